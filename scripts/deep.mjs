/**
 * `npm run test:deep -- PACKAGE ...`: the tests in `test/deep` of some packages, or of all, one package at a time: lateness,
 * load, kills, clusters, server versions, further servers, browsers, mutants of adapters, long campaigns of virtual tests. The
 * last line counts all tests.
 */
import { randomUUID } from "node:crypto"
import { existsSync } from "node:fs"
import { join } from "node:path"
import { leftovers } from "./leftovers.mjs"
import { measureAlone } from "./measure-alone.mjs"
import { failedLines, forget, nameOf, read, show, slowest, sum, tested } from "./results.mjs"
import { run } from "./run.mjs"
import { root } from "./workspace.mjs"

/** The versions of servers on which a package's tests run again, and which of the tests depend on the version. */
const versions = {
  "adapter-rabbitmq": {
    variable: "REQUEUE_RABBITMQ_VERSION",
    names: ["3.10", "4.0"],
    files: [
      "conformance",
      "traps/",
      "topologies",
      "badInput",
      "adoption",
      "native",
      "queues",
      "credentials",
      "tls",
      "returned",
      "policies",
      "connectionLimits",
      "browser"
    ]
  }
}

/** Virtual tests that try many more, and other, random inputs with `REQUEUE_CAMPAIGNS=1`. */
const campaigns = {
  "adapter-memory": ["test/Model", "test/crashes"],
  "adapter-nsq": ["test/credit.laws"],
  cli: ["test/passwords"],
  core: ["test/consume/groups.laws"]
}

const isDeep = (one) => existsSync(join(root, one.folder, "test", "deep"))
const known = tested.filter((one) => isDeep(one) || campaigns[nameOf(one)] !== undefined)
const asked = process.argv.slice(2)
const usage = `Usage: npm run test:deep -- [PACKAGE ...]
PACKAGE is one of ${known.map(nameOf).join(", ")}. Default: all of them. Part of a file's name chooses
further: npm run test:package -- PACKAGE deep/NAME`

/** Runs files of a package; returns the results in its report. */
const test = (folder, files, label, env) => {
  const report = `${folder}/test-results.${label}.json`
  forget([report])
  const reporters = ["--reporter=default", "--reporter=json", `--outputFile.json=${join(root, report)}`]
  const { status } = run(["vitest", "run", "--root", join(root, folder), ...reporters, ...files], {
    stdio: "inherit",
    env
  })
  const before = read(report)
  // Vitest does not report an error outside of tests.
  if (status !== 0 && before.counts.failed === 0) {
    const failed = [`vitest ended with ${status}: see the errors above`]
    return { ...before, counts: sum([before.counts, { failed: 1 }]), failed }
  }
  if (before.isThere) measureAlone(folder, report, env)
  return read(report)
}

const main = async () => {
  const id = randomUUID()
  const started = performance.now()
  const tests = []
  for (const one of known.filter((each) => asked.length === 0 || asked.includes(nameOf(each)))) {
    const env = { REQUEUE_SEED: "random", ...process.env, REQUEUE_CAMPAIGNS: "1", REQUEUE_TEST_RUN: id }
    console.log(`\n${nameOf(one)}`)
    tests.push(test(one.folder, ["test/deep/", ...(campaigns[nameOf(one)] ?? [])], "deep", env))
    const { files = [], names = [], variable } = versions[nameOf(one)] ?? {}
    for (const version of names) {
      console.log(`\n${nameOf(one)} on ${version}`)
      const chosen = files.map((file) => `test/deep/${file}`)
      tests.push(test(one.folder, chosen, `deep-${version}`, { ...env, [variable]: version }))
    }
  }
  const left = await leftovers(id)
  console.log(`\nThe slowest files:\n${slowest(tests, 10).join("\n")}\n`)
  for (const { name, skipped } of tests) for (const line of skipped) console.log(`skipped in ${name}: ${line}`)
  for (const line of failedLines(tests)) console.log(line)
  for (const { counts, name } of tests) console.log(`${name}: ${show(counts)}`)
  const all = sum(tests.map(({ counts }) => counts))
  const failed = all.failed + (left.length > 0 ? 1 : 0)
  const seconds = Math.round((performance.now() - started) / 1000)
  console.log(`\n${show({ ...all, failed })}, in ${Math.floor(seconds / 60)} min ${seconds % 60} s`)
  process.exitCode = failed + all.notMeasurable === 0 && all.passed > 0 ? 0 : 1
}

const unknown = asked.filter((name) => !known.some((one) => nameOf(one) === name))
if (unknown.length === 0) await main()
else {
  const isHelp = unknown.every((name) => name === "--help" || name === "-h")
  console[isHelp ? "log" : "error"](isHelp ? usage : `There is no ${unknown.join(", ")} with deep tests.\n${usage}`)
  process.exitCode = isHelp ? 0 : 2
}
