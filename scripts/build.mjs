/**
 * Builds the published package of the current folder: declarations with their docstrings, and modules without comments,
 * which nobody reads there: the sources are published as well.
 */
import { spawnSync } from "node:child_process"

const tsc = (...args) => {
  const { status } = spawnSync("tsc", args, { stdio: "inherit", shell: process.platform === "win32" })
  if (status !== 0) process.exit(status ?? 1)
}

tsc("-b")
// The same modules once more; declarations and their maps stay as they are.
const off = ["composite", "incremental", "declaration", "declarationMap"].flatMap((option) => [`--${option}`, "false"])
tsc(...off, "--tsBuildInfoFile", "null", "--removeComments")
