# Cross-validation of R's glasso: 20 penalties down to a hundredth of the largest, each started from the one before, five
# folds, then all rows down to the chosen penalty. Rscript glasso_cv.R FOLDER N P reads FOLDER/x.bin, prints the seconds
# it took, and writes the precision matrix to FOLDER/precision.bin.
suppressPackageStartupMessages(library(glasso))

arguments <- commandArgs(trailingOnly = TRUE)
folder <- arguments[1]
n <- as.integer(arguments[2])
p <- as.integer(arguments[3])
X <- matrix(readBin(file.path(folder, "x.bin"), "double", n * p, size = 8L), n, p)

centred <- function(rows, about) sweep(rows, 2, colMeans(about))
moments <- function(rows) crossprod(rows) / nrow(rows)

follow <- function(S, penalties) {
  fits <- list()
  for (penalty in penalties) {
    last <- if (length(fits)) fits[[length(fits)]]
    fit <- if (is.null(last)) {
      glasso(S, penalty, penalize.diagonal = FALSE)
    } else {
      glasso(S, penalty, penalize.diagonal = FALSE, start = "warm", w.init = last$w, wi.init = last$wi)
    }
    fits[[length(fits) + 1]] <- fit
  }
  fits
}

choose <- function(X) {
  R <- centred(X, X)
  scale <- sqrt(colMeans(R^2))
  R <- sweep(R, 2, scale, "/")
  S <- moments(R)
  penalties <- max(abs(S[upper.tri(S)])) * 10^seq(0, -2, length.out = 20)
  set.seed(0)
  fold <- sample(rep(1:5, length.out = nrow(R)))
  scores <- 0
  for (k in 1:5) {
    train <- R[fold != k, ]
    held <- moments(centred(R[fold == k, ], train))
    fits <- follow(moments(centred(train, train)), penalties)
    scores <- scores + vapply(fits, function(fit) {
      as.numeric(determinant(fit$wi)$modulus) - sum(fit$wi * held)
    }, 0)
  }
  best <- which.max(scores)
  follow(S, penalties[1:best])[[best]]$wi / outer(scale, scale)
}

begun <- proc.time()[["elapsed"]]
precision <- choose(X)
cat(proc.time()[["elapsed"]] - begun, "\n")
writeBin(as.numeric(precision), file.path(folder, "precision.bin"))
