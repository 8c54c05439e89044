/** Makes an adapter in a separate workspace with links to the other packages of this one, and checks it there. */
import assert from "node:assert/strict"
import { spawnSync } from "node:child_process"
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { after, test } from "node:test"
import { pathToFileURL } from "node:url"
import { check as arrows } from "./arrows.mjs"
import { check as conventions } from "./conventions.mjs"
import { inventory } from "./conventions/inventory.mjs"
import { make, refusal } from "./new-adapter.mjs"
import { patch } from "./patched.mjs"
import { root } from "./workspace.mjs"
import "./kept.mjs"

const home = mkdtempSync(join(tmpdir(), "requeue-new-adapter-"))
after(() => rmSync(home, { recursive: true }))

const folder = "packages/adapter-redis-streams"
for (const file of ["tsconfig.base.json", "tsconfig.test.json", ".oxlintrc.json"]) {
  copyFileSync(join(root, file), join(home, file))
}
for (const linked of ["node_modules", "scripts"]) symlinkSync(join(root, linked), join(home, linked), "junction")

const files = make("redis-streams", home)
for (const name of ["core", "kit"]) symlinkSync(join(root, "packages", name), join(home, "packages", name), "junction")
// The dependencies of an adapter without a driver.
const modules = join(root, "packages", "adapter-memory", "node_modules")
symlinkSync(modules, join(home, folder, "node_modules"), "junction")

const sources = Object.fromEntries(files.map((file) => [file, readFileSync(join(home, file), "utf8")]))
/** Runs a tool of the workspace in the package, or in the folder above all packages. */
const run = ([name, ...args], cwd = join(home, folder)) => {
  const result = spawnSync(name, args, {
    cwd,
    encoding: "utf8",
    shell: process.platform === "win32",
    timeout: 120_000,
    // The package's tests are not a part of this run.
    env: { ...process.env, NO_COLOR: "1", NODE_TEST_CONTEXT: undefined }
  })
  return { status: result.status, output: `${result.stdout}${result.stderr}${result.error?.message ?? ""}` }
}
const passes = (...given) => {
  const { output, status } = run(...given)
  assert.equal(status, 0, output)
}

test("names of adapters", () => {
  mkdirSync(join(home, "packages", "adapter-nsq"))
  assert.equal(refusal("redis", home), undefined)
  assert.match(refusal(undefined, home), /^NAME is missing\. Write, for example/)
  assert.match(refusal("nsq", home), /adapter-nsq is there already\. Choose another name/)
  for (const name of ["Redis", "redis_streams", "2q", "-x", "x-", "a b", "../x", "--force", ""]) {
    assert.match(refusal(name, home), /is not a valid name for an adapter\. Use small letters/)
  }
})

test("nothing of the template's name is left", () => {
  const names = Object.entries(sources).flat()
  assert.deepEqual(
    names.filter((text) => /acme/i.test(text)),
    []
  )
  assert.match(sources[".changeset/adapter-redis-streams.md"], /^---\n"@requeue\/adapter-redis-streams": minor\n---\n/)
  assert.ok(files.includes(`${folder}/src/RedisStreamsBroker.ts`))
})

test("it keeps the arrows and the conventions", () => {
  const code = Object.entries(sources).filter(([file]) => file.endsWith(".ts") && !file.endsWith("config.ts"))
  assert.deepEqual(
    code.flatMap(([file, source]) => arrows(file, source)),
    []
  )
  const published = Object.entries(sources).filter(([file]) => /\/src\/|package\.json$/.test(file))
  assert.deepEqual(conventions(inventory(Object.fromEntries(published))), [])
})

test("it compiles", () => passes(["tsc", "-p", "tsconfig.test.json"]))

test("with leases it compiles as well, and renews them", () => {
  const made = make("leased-streams", home, true)
  const own = join(home, "packages/adapter-leased-streams")
  symlinkSync(modules, join(own, "node_modules"), "junction")
  assert.deepEqual(
    made.filter((file) => /leased(-->)?$/m.test(readFileSync(join(home, file), "utf8"))),
    []
  )
  assert.deepEqual(
    made.filter((file) => file.endsWith("extend.ts")),
    ["packages/adapter-leased-streams/src/internal/consume/extend.ts"]
  )
  assert.ok(files.every((file) => !file.endsWith("extend.ts")))
  const { output, status } = run(["tsc", "-p", "tsconfig.test.json"], own)
  assert.equal(status, 0, output)
})

test("it has nothing that the linter finds", () =>
  passes(["oxlint", "--type-aware", "--deny-warnings", `${folder}/src`, `${folder}/test`], home))

test("its options and translations pass their tests", () => passes(["vitest", "run", "Options", "translations"]))

test("its mutants name places that it has, and cases", async () => {
  const { patches } = await import(pathToFileURL(join(home, folder, "test", "deep", "mutants.ts")).href)
  for (const one of patches) {
    const [file, source] = Object.entries(sources).find(([name]) => name.endsWith(one.file))
    assert.notEqual(patch(file, source, one), source)
    const { stdout } = spawnSync("git", ["grep", "-lF", one.kills, "packages/conformance/src/cases"], { cwd: root })
    assert.notEqual(String(stdout), "", one.kills)
  }
})

test("its suite fails in the first case, and says what to write", () => {
  const { output, status } = run(["vitest", "run", "conformance"])
  assert.equal(status, 1, output)
  assert.match(output, /Tests +1 failed \(\d+\)/)
  assert.match(output, /not written yet: .* MUST 6 of packages\/core\/src\/port\/Broker\.ts/)
  assert.match(output, /Write it in packages\/adapter-redis-streams\/src\/internal\/client\.ts/)
})
