# An Ising graph by R glmnet, as a worker: a logistic regression of every node on all others, over one grid of lambda.
# It reads the rows (-1 and +1) from binary files and answers "fit K" with one line of JSON. Only the calls of glmnet()
# are timed.
suppressPackageStartupMessages(library(glmnet))

# The last argument is the folder; one before it makes the window of lambda that much longer.
arguments <- commandArgs(trailingOnly = TRUE)
folder <- tail(arguments, 1)
longer <- if (length(arguments) > 1) as.numeric(arguments[1]) else 1
lines <- read.delim(file.path(folder, "meta.tsv"), header = FALSE, colClasses = "character")
meta <- as.list(setNames(lines[[2]], lines[[1]]))
n <- as.integer(meta$n)
p <- as.integer(meta$p)
connection <- file(file.path(folder, "x.bin"), "rb")
X <- matrix(readBin(connection, "double", n * p, size = 8L), n, p)
close(connection)

# The null gradient of node j is X'(y_j - mean) / n with y_j 0 or 1; the grid starts at the largest of all nodes.
Y <- (X + 1) / 2
gradient <- crossprod(X, sweep(Y, 2, colMeans(Y))) / n
diag(gradient) <- 0
points <- as.integer(meta$points)
lambdas <- max(abs(gradient)) * exp(seq(0, log(as.numeric(meta$ratio) / longer), length.out = points))

fit <- function() {
  lapply(seq_len(p), function(j) {
    glmnet(X[, -j], Y[, j], family = "binomial", lambda = lambdas, standardize = FALSE)
  })
}

# Edges (both coefficients) and the composite loss at the end of the window.
describe <- function(models) {
  B <- matrix(0, p, p)
  loss <- 0
  for (j in seq_len(p)) {
    model <- models[[j]]
    last <- length(model$lambda)
    B[-j, j] <- as.numeric(model$beta[, last])
    eta <- as.numeric(X[, -j] %*% B[-j, j]) + model$a0[last]
    loss <- loss + mean(log1p(exp(-abs(eta))) + pmax(-X[, j] * eta, 0))
  }
  edges <- sum(B != 0 & t(B) != 0) / 2
  reached <- min(vapply(models, function(model) length(model$lambda), 0L))
  sprintf('"points": %d, "edges": %d, "loss": %.8g', reached, as.integer(edges), loss)
}

answer <- function(text) {
  cat("{", text, "}\n", sep = "")
  flush(stdout())
}

small <- matrix(sin(seq_len(300)), 30)
invisible(glmnet(small, rep(0:1, 15), family = "binomial"))
answer(sprintf('"ready": true, "version": "%s", "r": "%s.%s"', packageVersion("glmnet"), R.version$major, R.version$minor))

input <- file("stdin")
open(input)
while (length(line <- readLines(input, n = 1)) > 0) {
  words <- strsplit(trimws(line), " ")[[1]]
  if (words[1] == "quit") break
  repeats <- as.integer(words[2])
  begun <- proc.time()[["elapsed"]]
  for (k in seq_len(repeats)) models <- fit()
  seconds <- (proc.time()[["elapsed"]] - begun) / repeats
  answer(sprintf('"seconds": %.9g, %s', seconds, describe(models)))
}
