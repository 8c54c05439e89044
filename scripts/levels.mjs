/**
 * The levels of tests, by folder: `test/` is virtual (no server, no real time), `test/real/` runs on real servers and asserts
 * facts only, and `test/deep/` holds the rest. See "Five levels of tests" in CONTRIBUTING.md.
 *
 * `node scripts/levels.mjs` checks that each file is in the right folder.
 */
import { globSync, readFileSync } from "node:fs"
import { posix as path } from "node:path"
import { imports } from "./arrows.mjs"
import { upperBounds } from "./levels/upperBounds.mjs"

const folders = ["{packages,apps,tools}/*/test", "benchmarks/test", "examples/test"]

/** Globs of the test files of each level. */
export const globs = {
  virtual: folders.map((folder) => `${folder}/**/*.test.ts`),
  real: folders.map((folder) => `${folder}/real/**/*.test.ts`),
  deep: folders.map((folder) => `${folder}/deep/**/*.test.ts`)
}

/** The level of a file of tests. */
export const levelOf = (file) => /\/test\/(real|deep)\//.exec(file)?.[1] ?? "virtual"

/** The servers that the real tests of a package run on. */
export const servers = {
  "apps/example": ["rabbitmq"],
  examples: ["rabbitmq", "nsq", "sqs"],
  "packages/adapter-nsq": ["nsq"],
  "packages/adapter-postgres": ["postgres"],
  "packages/adapter-rabbitmq": ["rabbitmq"],
  "packages/adapter-sqlite": [],
  "packages/adapter-sqs": ["sqs"],
  "packages/cli": ["nsq", "postgres", "rabbitmq"],
  "packages/console": ["sqs", "chromium"],
  "packages/simulation": ["rabbitmq", "nsq", "sqs"],
  "tools/brokers": ["sqs"]
}

/** The package that a file belongs to. */
export const folderOf = (file) => file.split("/test/")[0]

/** The modules that start servers; the first is what other packages call `@requeue/brokers`. */
const brokers = ["tools/brokers/src/index.ts", "tools/brokers/src/start.ts"]

const resolve = (file, specifier) => {
  if (specifier === "@requeue/brokers") return brokers[0]
  return specifier.startsWith(".") ? path.join(path.dirname(file), specifier) : undefined
}

/** Whether a file of tests starts servers, itself or through other files of tests; `read` returns the text of a file. */
export const needsServer = (file, read) =>
  brokers.includes(file) ||
  (file?.includes("/test/") === true &&
    imports(read(file)).some((specifier) => needsServer(resolve(file, specifier), read)))

/** Modules of `@requeue/conformance` that judge lateness. */
const judges = /^@requeue\/conformance\/(Control|Lateness|Measured)$/

/** Returns the errors in the place of one file, as lines to print. */
export const check = (file, read) => {
  const level = levelOf(file)
  if (level === "deep") return []
  const source = read(file)
  const lines = upperBounds(file, source).map(
    (line) => `${file}:${line} asserts an upper bound on real time: move it to test/deep`
  )
  if (level === "virtual" && needsServer(file, read)) {
    lines.push(`${file} starts a server: move it to test/real if it asserts facts only, else to test/deep`)
  }
  if (level === "real" && imports(source).some((specifier) => judges.test(specifier))) {
    lines.push(`${file} judges lateness: move it to test/deep`)
  }
  if (level === "real" && servers[folderOf(file)] === undefined) {
    lines.push(`${file}: name the servers of ${folderOf(file)} in scripts/levels.mjs`)
  }
  return lines
}

if (import.meta.main) {
  const read = (file) => readFileSync(file, "utf8")
  const files = globSync(folders.map((folder) => `${folder}/**/*.ts`)).map((file) => file.replaceAll("\\", "/"))
  const lines = files.toSorted().flatMap((file) => check(file, read))
  for (const line of lines) console.error(line)
  console.log(`levels: ${files.length} files, ${lines.length} in the wrong place`)
  process.exitCode = lines.length === 0 && files.length > 0 ? 0 : 1
}
