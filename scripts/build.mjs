/**
 * Builds the published package of the current folder: declarations with their docstrings, and modules without comments, because
 * the sources are published as well. Public declarations have maps to the sources; modules have none, because they are the
 * sources without their types. Internal declarations are included if public ones lead to them. With `--bundle`, modules are few.
 */
import { spawnSync } from "node:child_process"
import { existsSync, globSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { bundle } from "./bundle.mjs"

const tsc = (...args) => {
  const { status } = spawnSync("tsc", args, { stdio: "inherit", shell: process.platform === "win32" })
  if (status !== 0) process.exit(status ?? 1)
}

// The compiler leaves the output of deleted files.
rmSync("dist", { recursive: true, force: true })
tsc("-b")
// The same modules again, already checked; declarations and their maps stay unchanged.
const off = ["composite", "incremental", "declaration", "declarationMap"].flatMap((option) => [`--${option}`, "false"])
tsc(...off, "--tsBuildInfoFile", "null", "--noCheck", "--removeComments")

/** The declarations that one leads to. */
const imported = (file) =>
  [...readFileSync(file, "utf8").matchAll(/(?:from|import\() ?"(\.[^"]+)"/g)]
    .map(([, path]) => join(file, "..", path.replace(/\.[jt]s$/, ".d.ts")))
    .filter((each) => existsSync(each))

const internal = globSync("dist/**/internal/**/*.d.ts")
const reached = new Set(globSync("dist/**/*.d.ts").filter((file) => !internal.includes(file)))
for (const file of reached) for (const each of imported(file)) reached.add(each)

for (const file of internal) {
  rmSync(`${file}.map`, { force: true })
  if (!reached.has(file)) {
    rmSync(file)
    continue
  }
  writeFileSync(file, readFileSync(file, "utf8").replace(/\n\/\/# sourceMappingURL=.*\n?$/, "\n"))
}

if (process.argv.includes("--bundle")) await bundle()
