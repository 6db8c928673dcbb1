# R glmnet as a worker: reads a problem from binary files, then answers "fit K" and "cv K" with one line of JSON.
# Only the calls of glmnet() and cv.glmnet() are timed.
suppressPackageStartupMessages(library(glmnet))

folder <- commandArgs(trailingOnly = TRUE)[1]
lines <- read.delim(file.path(folder, "meta.tsv"), header = FALSE, colClasses = "character")
meta <- as.list(setNames(lines[[2]], lines[[1]]))
n <- as.integer(meta$n)
p <- as.integer(meta$p)
nnz <- as.numeric(meta$nnz)

read_bin <- function(name, what, count) {
  connection <- file(file.path(folder, name), "rb")
  on.exit(close(connection))
  readBin(connection, what, count, size = if (what == "integer") 4L else 8L)
}

y <- read_bin("y.bin", "double", n)
if (meta$sparse == "1") {
  X <- new("dgCMatrix", i = read_bin("i.bin", "integer", nnz), p = read_bin("p.bin", "integer", p + 1),
           x = read_bin("x.bin", "double", nnz), Dim = c(n, p))
} else {
  X <- read_bin("x.bin", "double", nnz)
  dim(X) <- c(n, p)
}
family <- if (meta$loss == "logistic") "binomial" else "gaussian"
options <- list(family = family, nlambda = as.integer(meta$points), lambda.min.ratio = as.numeric(meta$ratio),
                standardize = meta$standardize == "1")

fit <- function() do.call(glmnet, c(list(x = X, y = y), options))
cross_validate <- function() do.call(cv.glmnet, c(list(x = X, y = y, nfolds = 5), options))

# Points, non-zeros and training loss at the end of the window, or at the model that was chosen.
describe <- function(model) {
  path <- if (inherits(model, "cv.glmnet")) model$glmnet.fit else model
  chosen <- if (inherits(model, "cv.glmnet")) model$lambda.min else min(path$lambda)
  theta <- as.numeric(coef(path, s = chosen))
  eta <- as.numeric(X %*% theta[-1]) + theta[1]
  loss <- if (family == "binomial") mean(pmax(eta, 0) - y * eta + log1p(exp(-abs(eta)))) else mean((y - eta)^2) / 2
  sprintf('"points": %d, "nnz": %d, "loss": %.8g', length(path$lambda), sum(theta[-1] != 0), loss)
}

answer <- function(text) {
  cat("{", text, "}\n", sep = "")
  flush(stdout())
}

small <- matrix(sin(seq_len(300)), 30)
invisible(glmnet(small, rep(0:1, 15), family = family))
answer(sprintf('"ready": true, "version": "%s", "r": "%s.%s"', packageVersion("glmnet"), R.version$major, R.version$minor))

input <- file("stdin")
open(input)
set.seed(1)
while (length(line <- readLines(input, n = 1)) > 0) {
  words <- strsplit(trimws(line), " ")[[1]]
  if (words[1] == "quit") break
  job <- if (words[1] == "cv") cross_validate else fit
  repeats <- as.integer(words[2])
  begun <- proc.time()[["elapsed"]]
  for (k in seq_len(repeats)) model <- job()
  seconds <- (proc.time()[["elapsed"]] - begun) / repeats
  answer(sprintf('"seconds": %.9g, %s', seconds, describe(model)))
}
