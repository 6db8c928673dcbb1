// Groups of sparse columns of which few combinations occur, as of the indicators of some categories: a row has one
// pattern of a group, so that a group costs one number a row, however many columns it has. See pattern_kernels.hpp.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "columns.hpp"
#include "penalty.hpp"

namespace bregpath {

// Columns of a design that are chosen time and again, with few changes from one choice to the next. As they change,
// they are grouped anew, so that groups hold little else. A choice is valid until the next one.
class PatternedColumns {
   public:
    explicit PatternedColumns(const Columns& x)
        : x_(x), may_group_(std::any_of(x.at, x.at + x.k, [](const Column& c) { return c.is_indicator; })),
          home_(x.k) {}

    // The rows have become others, each of which was one of those before, with the same patterns.
    void work_on(const Columns& x, const std::vector<int32_t>& origin) {
        if (x.n >= 2 * rows_tried_ && rows_tried_ > 0) patience_ = kPatience, may_group_ = true, rows_tried_ = 0;
        x_ = x;
        for (Group& group : groups_) {
            const std::vector<uint16_t> before = std::exchange(group.of_row, {});
            group.of_row.resize(x.n);
            for (Size i = 0; i < x.n; ++i) group.of_row[i] = before[origin[i]];
        }
    }

    // Columns that are in groups at present.
    Size n_grouped() const {
        return std::count_if(home_.begin(), home_.end(), [](const Home& home) { return home.group >= 0; });
    }

    Columns of(const Index& index) {
        if (may_group_ && is_due(index)) find_groups(index);
        if (groups_.empty()) return choice_.of(x_, index);
        chosen_.clear(), worthwhile_.clear();
        for (Group& group : groups_) group.begin_choice();
        for (const Size j : index) {
            const Home& home = home_[j];
            if (home.group >= 0) groups_[home.group].choose(home.slot, Size(chosen_.size()), x_.at[j].count);
            chosen_.push_back(x_.at[j]);
        }
        for (const Group& group : groups_) {
            if (!group.pays()) continue;
            worthwhile_.push_back(group.patterns());
            for (const PatternColumn& c : group.columns)
                if (c.place >= 0) chosen_[c.place].count = 0;  // none of its rows is left to pass over
        }
        return {x_.n, Size(chosen_.size()), chosen_.data(), false, Size(worthwhile_.size()), worthwhile_.data(),
                room_.data()};
    }

   private:
    struct Group {
        explicit Group(Size n) : of_row(n, 0), parent(1, 0) {}

        std::vector<uint16_t> of_row, parent;
        std::vector<PatternColumn> columns;
        Index members;    // which columns these are
        Size places = 0;  // stored, of those that are chosen

        Patterns patterns() const {
            return {of_row.data(), parent.data(), Size(parent.size()), columns.data(), Size(columns.size())};
        }
        // A row costs as much as a stored place that is passed over, and so does a pattern; making groups costs, too.
        bool pays() const { return 2 * places > 3 * Size(of_row.size() + parent.size()); }

        void begin_choice() {
            places = 0;
            for (PatternColumn& c : columns) c.place = -1;
        }
        void choose(Size slot, Size place, Size count) { columns[slot].place = place, places += count; }
    };

    struct Home {
        int group = -1;  // of a column, or none
        Size slot = 0;   // its number there
        bool is_new = true;
    };

    // Whether what was passed over of columns that came since the groups were made is worth making them again.
    bool is_due(const Index& index) {
        Size places = 0;
        for (const Size j : index) {
            if (!x_.at[j].is_indicator) continue;
            places += x_.at[j].count;
            if (home_[j].is_new) passed_ += x_.at[j].count;
        }
        return 2 * places > 3 * x_.n && passed_ > patience_ * places;
    }

    // Columns in their order, in which the indicators of a category are neighbours, while their patterns are few.
    void find_groups(const Index& index) {
        groups_.clear(), passed_ = 0;
        std::fill(home_.begin(), home_.end(), Home{});
        room_.resize(2 * kPatternCopies * kMostPatterns);
        is_met_.assign(kMostPatterns, 0), child_.assign(kMostPatterns, 0);
        for (const Size j : index) home_[j].is_new = false;
        Group group(x_.n);
        for (const Size j : index) {
            if (!x_.at[j].is_indicator || grow(group, j)) continue;
            if (!group.pays()) break;  // it is full: columns like these have too many patterns
            keep(std::exchange(group, Group(x_.n)));
            grow(group, j);
        }
        if (group.pays()) keep(std::move(group));
        if (groups_.empty()) patience_ *= 2, rows_tried_ = x_.n;  // there may never be one, of so few rows
        may_group_ = patience_ < kMostPatience;
    }

    // Every pattern that rows of the column have becomes, with the column, another one. False where they are too many.
    bool grow(Group& group, Size j) {
        const Column& x = x_.at[j];
        met_.clear();
        for (Size e = 0; e < x.count; ++e) {
            const uint16_t pattern = group.of_row[x.rows[e]];
            if (!is_met_[pattern]) is_met_[pattern] = 1, met_.push_back(pattern);
        }
        for (const uint16_t pattern : met_) is_met_[pattern] = 0;
        const Size most = std::min(kMostPatterns, x_.n / kRowsPerPattern);
        if (Size(group.parent.size() + met_.size()) > most) return false;
        for (const uint16_t pattern : met_) {
            child_[pattern] = uint16_t(group.parent.size());
            group.parent.push_back(pattern);
        }
        for (Size e = 0; e < x.count; ++e) group.of_row[x.rows[e]] = child_[group.of_row[x.rows[e]]];
        group.columns.push_back({Size(group.parent.size()), -1}), group.members.push_back(j);
        group.places += x.count;
        return true;
    }

    void keep(Group group) {
        for (size_t slot = 0; slot < group.members.size(); ++slot)
            home_[group.members[slot]] = {int(groups_.size()), Size(slot), false};
        groups_.push_back(std::move(group));
    }

    static constexpr Size kRowsPerPattern = 4;  // at least, on average
    static constexpr Size kPatience = 4, kMostPatience = 64;

    Columns x_;
    bool may_group_;
    std::vector<Home> home_;             // of each column
    std::vector<Group> groups_;
    Size passed_ = 0, patience_ = kPatience;  // passes over all that is chosen take as long as making groups of it
    Size rows_tried_ = 0;                // of the last time that there was no group
    std::vector<uint16_t> met_, child_;  // patterns of the rows of a column, and what each becomes with the column
    std::vector<uint8_t> is_met_;
    ColumnChoice choice_;
    std::vector<Column> chosen_;
    std::vector<Patterns> worthwhile_;
    std::vector<double> room_;
};

}  // namespace bregpath
