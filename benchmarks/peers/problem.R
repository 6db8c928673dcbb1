# Sourced by the R peers: the folder of a problem, what meta.tsv says of it, and its binary files.
folder <- commandArgs(trailingOnly = TRUE)[1]
lines <- read.delim(file.path(folder, "meta.tsv"), header = FALSE, colClasses = "character")
meta <- as.list(setNames(lines[[2]], lines[[1]]))
n <- as.integer(meta$n)
p <- as.integer(meta$p)
family <- if (meta$loss == "logistic") "binomial" else meta$loss

read_bin <- function(name, count, what = "double") {
  connection <- file(file.path(folder, name), "rb")
  on.exit(close(connection))
  readBin(connection, what, count, size = if (what == "integer") 4L else 8L)
}
y <- read_bin("y.bin", n)
