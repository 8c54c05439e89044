/**
 * `npm run test:matrix` runs the conformance suite, the traps and all else that depends on the server's version on every
 * RabbitMQ that is supported, one after another; `npm run test:matrix -- 3.10` on some. A release that is not on this
 * machine is fetched first: see tools/brokers/README.md. About four minutes each; with REQUEUE_SLOW_TESTS=1, faults,
 * delays and a cluster are run as well.
 */
import { existsSync, readFileSync, rmSync } from "node:fs"
import { join } from "node:path"
import { explain, run } from "./run.mjs"
import { root } from "./workspace.mjs"

const releases = ["3.10", "4.0", "4.3"]
/** What tests beside these show does not depend on the version, or takes long. */
const names = ["conformance", "traps", "topologies", "badInput", "adoption", "native", "queues", "credentials", "tls"]
const files = names.map((name) => `test/${name}`)
const folder = join(root, "packages", "adapter-rabbitmq")

const asked = process.argv.slice(2)
const unknown = asked.filter((release) => !releases.includes(release))
if (unknown.length > 0) {
  console.error(`No release ${unknown.join(", ")}. There are: ${releases.join(", ")}`)
  process.exit(2)
}

const build = run(["turbo", "run", "build", "--filter=./packages/adapter-rabbitmq..."])
if (build.status !== 0) {
  explain(build)
  process.exit(1)
}

// What the environment says of a broker holds for one release only.
const { REQUEUE_RABBITMQ_URL: _, ...environment } = process.env

const test = (release) => {
  const file = join(folder, `test-results.${release}.json`)
  rmSync(file, { force: true })
  const chosen = environment.REQUEUE_SLOW_TESTS === "1" ? [] : files
  // One file at a time: what is measured is measured on a machine that does nothing else.
  const vitest = ["vitest", "run", "--no-file-parallelism", "--reporter=default", "--reporter=json"]
  const { status } = run([...vitest, `--outputFile.json=${file}`, ...chosen], {
    cwd: folder,
    stdio: "inherit",
    env: { ...environment, REQUEUE_RABBITMQ_VERSION: release }
  })
  if (!existsSync(file)) return `FAILED  ${release}: no results`
  const { numFailedTests, numPassedTests, numPendingTests } = JSON.parse(readFileSync(file, "utf8"))
  const counts = `${numPassedTests} passed, ${numFailedTests} failed, ${numPendingTests} skipped`
  // The status also knows of errors outside of tests.
  return `${status === 0 ? "ok    " : "FAILED"}  RabbitMQ ${release}: ${counts}`
}

const lines = (asked.length > 0 ? asked : releases).map(test)
console.log(["", ...lines].join("\n"))
process.exitCode = lines.every((line) => line.startsWith("ok")) ? 0 : 1
