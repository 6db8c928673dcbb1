# R glmnet on every outer split of a problem: lasso, relaxed lasso, elastic net (alpha on the same folds), ridge.
# Writes model_NAME.bin: for each split the seconds, the intercept and the coefficients.
suppressPackageStartupMessages(library(glmnet))

script <- sub("^--file=", "", grep("^--file=", commandArgs(), value = TRUE))
source(file.path(dirname(script), "problem.R"))
J <- as.integer(meta$splits)

X <- matrix(read_bin("x.bin", n * p), n)
splits <- matrix(read_bin("splits.bin", n * J), n)
alphas <- c(0.1, 0.3, 0.5, 0.7, 0.9)

validate <- function(rows, foldid, ...) {
  suppressWarnings(cv.glmnet(X[rows, ], y[rows], family = family, foldid = foldid, ...))
}
at_minimum <- function(model) as.numeric(coef(model, s = "lambda.min"))

methods <- list(
  lasso = function(rows, foldid) at_minimum(validate(rows, foldid)),
  lasso_1se = function(rows, foldid) as.numeric(coef(validate(rows, foldid), s = "lambda.1se")),
  ridge = function(rows, foldid) at_minimum(validate(rows, foldid, alpha = 0)),
  elastic_net = function(rows, foldid) {
    models <- lapply(alphas, function(alpha) validate(rows, foldid, alpha = alpha))
    at_minimum(models[[which.min(sapply(models, function(model) min(model$cvm)))]])
  },
  relaxed_lasso = function(rows, foldid) {
    model <- validate(rows, foldid, relax = TRUE)
    as.numeric(coef(model, s = "lambda.min", gamma = "gamma.min"))
  }
)

# BREGPATH_METHODS names those that are wanted, separated by commas; all by default.
wanted <- Sys.getenv("BREGPATH_METHODS")
if (nzchar(wanted)) methods <- methods[strsplit(wanted, ",")[[1]]]

invisible(glmnet(matrix(sin(seq_len(300)), 30), rep(0:1, 15), family = family))
for (name in names(methods)) {
  out <- sapply(seq_len(J), function(j) {
    rows <- which(splits[, j] > 0)
    foldid <- splits[rows, j]
    begun <- proc.time()[["elapsed"]]
    theta <- tryCatch(methods[[name]](rows, foldid), error = function(problem) rep(NA_real_, p + 1))
    c(proc.time()[["elapsed"]] - begun, theta)
  })
  connection <- file(file.path(folder, paste0("model_", name, ".bin")), "wb")
  writeBin(as.numeric(out), connection)
  close(connection)
}
