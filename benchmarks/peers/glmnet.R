# R glmnet as a worker: reads a problem from binary files, then answers "fit K", "cv K" and, after it, "chosen K" (a
# path to lambda.min) with one line of JSON. Only the calls of glmnet() and cv.glmnet() are timed.
suppressPackageStartupMessages(library(glmnet))

script <- sub("^--file=", "", grep("^--file=", commandArgs(), value = TRUE))
source(file.path(dirname(script), "problem.R"))
nnz <- as.numeric(meta$nnz)

if (meta$sparse == "1") {
  X <- new("dgCMatrix", i = read_bin("i.bin", nnz, "integer"), p = read_bin("p.bin", p + 1, "integer"),
           x = read_bin("x.bin", nnz), Dim = c(n, p))
} else {
  X <- read_bin("x.bin", nnz)
  dim(X) <- c(n, p)
}
options <- list(family = family, standardize = meta$standardize == "1")
window <- list(nlambda = as.integer(meta$points), lambda.min.ratio = as.numeric(meta$ratio))
if (meta$dfmax != "0") options$dfmax <- as.integer(meta$dfmax)

grid <- NULL  # of the last cross-validation, down to the lambda it chose
jobs <- list(fit = function() do.call(glmnet, c(list(x = X, y = y), options, window)),
             cv = function() {
               set.seed(1)  # the same folds in each round
               do.call(cv.glmnet, c(list(x = X, y = y, nfolds = 5), options, window))
             },
             chosen = function() do.call(glmnet, c(list(x = X, y = y, lambda = grid), options)))

# Points, non-zeros and training loss at the end of the window, or at the model that was chosen.
describe <- function(model) {
  path <- if (inherits(model, "cv.glmnet")) model$glmnet.fit else model
  chosen <- if (inherits(model, "cv.glmnet")) model$lambda.min else min(path$lambda)
  theta <- coef(path, s = chosen)
  theta <- if (is.list(theta)) sapply(theta, as.numeric) else as.matrix(theta)
  eta <- as.matrix(X %*% theta[-1, , drop = FALSE]) + rep(theta[1, ], each = n)
  loss <- switch(family,
                 binomial = mean(pmax(eta, 0) - y * eta + log1p(exp(-abs(eta)))),
                 multinomial = mean(log(rowSums(exp(eta))) - eta[cbind(seq_len(n), y + 1)]),
                 gaussian = mean((y - eta)^2) / 2)
  sprintf('"points": %d, "nnz": %d, "loss": %.8g', length(path$lambda), sum(theta[-1, ] != 0), loss)
}

answer <- function(text) {
  cat("{", text, "}\n", sep = "")
  flush(stdout())
}

small <- matrix(sin(seq_len(300)), 30)
invisible(glmnet(small, rep(seq_len(if (family == "multinomial") 3 else 2), length.out = 30), family = family))
answer(sprintf('"ready": true, "version": "%s", "r": "%s.%s", "jobs": [%s]', packageVersion("glmnet"), R.version$major,
               R.version$minor, paste0('"', names(jobs), '"', collapse = ", ")))

input <- file("stdin")
open(input)
while (length(line <- readLines(input, n = 1)) > 0) {
  words <- strsplit(trimws(line), " ")[[1]]
  if (words[1] == "quit") break
  job <- jobs[[words[1]]]
  repeats <- as.integer(words[2])
  begun <- proc.time()[["elapsed"]]
  for (k in seq_len(repeats)) model <- job()
  seconds <- (proc.time()[["elapsed"]] - begun) / repeats
  if (words[1] == "cv") grid <- model$lambda[model$lambda >= model$lambda.min]
  answer(sprintf('"seconds": %.9g, %s', seconds, describe(model)))
}
