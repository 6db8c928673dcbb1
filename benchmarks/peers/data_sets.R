# Regressions of data sets that come with R packages: Rscript data_sets.R FOLDER. What is not installed is left out.
# Writes NAME.bin: rows, columns and whether y is a class (three integers), X by columns, y. Dummies for factors;
# rows with a missing value are left out, and columns that are constant.
folder <- commandArgs(trailingOnly = TRUE)[1]

write_problem <- function(name, X, y) {
  is_class <- is.logical(y)
  if (is.data.frame(X)) {
    y <- y[complete.cases(X)]
    X <- model.matrix(~., data = X)[, -1, drop = FALSE]
  }
  whole <- complete.cases(X) & !is.na(y)
  X <- as.matrix(X[whole, , drop = FALSE])
  X <- X[, apply(X, 2, sd) > 0, drop = FALSE]
  connection <- file(file.path(folder, paste0(name, ".bin")), "wb")
  writeBin(as.integer(c(dim(X), is_class)), connection)
  writeBin(as.double(X), connection)
  writeBin(as.double(y[whole]), connection)
  close(connection)
}

from <- function(package, item) {
  place <- new.env()
  data(list = item, package = package, envir = place)
  as.list(place)
}
drop <- function(table, ...) table[, setdiff(names(table), c(...))]
numbers <- function(table) sapply(table, function(column) as.numeric(as.character(column)))
pairs <- function(table) model.matrix(~ .^2, data = as.data.frame(table))[, -1]
some <- function(table, n) { set.seed(1); as.data.frame(table)[sample(nrow(table), n), ] }

problems <- list(
  mdrr = function() with(from("caret", "mdrr"), list(mdrrDescr, mdrrClass == "Active")),
  cox2 = function() with(from("caret", "cox2"), list(cox2Descr, cox2Class == "Active")),
  dhfr = function() with(from("caret", "dhfr"), list(drop(dhfr, "Y"), dhfr$Y == "active")),
  credit = function() with(from("caret", "GermanCredit"), list(drop(GermanCredit, "Class"), GermanCredit$Class == "Bad")),
  cells = function() with(from("caret", "segmentationData"), list(segmentationData[, -(1:3)], segmentationData$Class == "PS")),
  scat = function() with(from("caret", "scat"), list(scat[, c("Age", "Number", "Length", "Diameter", "Taper", "TI", "Mass", "d13C", "d15N", "CN")], scat$Species == "bobcat")),
  blood_brain = function() with(from("caret", "BloodBrain"), list(bbbDescr, logBBB)),
  fat = function() with(from("caret", "tecator"), list(absorp, endpoints[, 2])),
  protein = function() with(from("caret", "tecator"), list(absorp, endpoints[, 3])),
  sonar = function() with(from("mlbench", "Sonar"), list(drop(Sonar, "Class"), Sonar$Class == "M")),
  ionosphere = function() with(from("mlbench", "Ionosphere"), list(numbers(Ionosphere[, c(1, 3:34)]), Ionosphere$Class == "good")),
  pima = function() with(from("mlbench", "PimaIndiansDiabetes"), list(pairs(PimaIndiansDiabetes[, -9]), PimaIndiansDiabetes$diabetes == "pos")),
  dna = function() { d <- some(from("mlbench", "DNA")$DNA, 600); list(numbers(d[, 1:180]), d$Class == "n") },
  soil = function() {
    d <- from("mlbench", "Satellite")$Satellite
    d <- some(d[d$classes %in% c("grey soil", "damp grey soil"), ], 700)
    list(d[, 1:36], d$classes == "grey soil")
  },
  vehicle = function() {
    d <- from("mlbench", "Vehicle")$Vehicle
    d <- d[d$Class %in% c("opel", "saab"), ]
    list(pairs(d[, -19]), d$Class == "opel")
  },
  vowel = function() with(from("mlbench", "Vowel"), list(pairs(Vowel[, 2:10]), Vowel$Class %in% c("hid", "hId", "hEd", "hAd", "hYd"))),
  boston = function() with(from("mlbench", "BostonHousing"), list(pairs(BostonHousing[, -14]), BostonHousing$medv)),
  ozone = function() { d <- numbers(from("mlbench", "Ozone")$Ozone)[, -9]; d <- d[complete.cases(d), ]; list(pairs(d[, -4]), d[, 4]) },
  spam = function() { d <- some(from("kernlab", "spam")$spam, 1000); list(drop(d, "type"), d$type == "spam") },
  musk = function() with(from("kernlab", "musk"), list(musk[, -ncol(musk)], musk[, ncol(musk)] == 1)),
  promoter = function() with(from("kernlab", "promotergene"), list(promotergene[, -1], promotergene$Class == "+")),
  gasoline = function() with(from("pls", "gasoline"), list(unclass(gasoline$NIR), gasoline$octane)),
  yarn = function() with(from("pls", "yarn"), list(unclass(yarn$NIR), yarn$density)),
  alzheimer = function() { d <- as.data.frame(from("modeldata", "ad_data")$ad_data); list(drop(d, "Class"), d$Class == "Impaired") },
  biomass = function() with(from("modeldata", "biomass"), list(pairs(biomass[, c("carbon", "hydrogen", "oxygen", "nitrogen", "sulfur")]), biomass$HHV)),
  concrete = function() { d <- as.data.frame(from("modeldata", "concrete")$concrete); list(pairs(d[, -9]), d$compressive_strength) },
  cars = function() { d <- as.data.frame(from("modeldata", "car_prices")$car_prices); list(pairs(d[, -1]), log(d$Price)) },
  chicago = function() { d <- some(from("modeldata", "Chicago")$Chicago, 500); list(d[, 2:30], d$ridership) },
  ames = function() { d <- some(from("modeldata", "ames")$ames, 600); list(drop(d, "Sale_Price"), log(d$Sale_Price)) },
  golub = function() with(from("multtest", "golub"), list(t(golub), golub.cl == 1)),
  crime = function() with(from("MASS", "UScrime"), list(pairs(UScrime[, -16]), UScrime$y))
)

for (name in names(problems)) {
  problem <- tryCatch(suppressWarnings(problems[[name]]()), error = function(condition) NULL)
  if (!is.null(problem)) write_problem(name, problem[[1]], problem[[2]])
}
