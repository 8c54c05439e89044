import assert from "node:assert/strict"
import { mkdtempSync, globSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { test } from "node:test"
import { addressOf, changes, deadLinks, fillText, linksOf, problems, published } from "./release/address.mjs"
import { root } from "./workspace.mjs"

const address = "https://github.com/acme/requeue"

test("the repository's address is read in every form in which npm takes it", () => {
  const forms = [`git+${address}.git`, `${address}.git`, address, { type: "git", url: `git+${address}.git` }]
  for (const repository of forms) assert.equal(addressOf({ repository }), address)
  for (const repository of [undefined, "", "acme/requeue", "git@github.com:acme/requeue.git"])
    assert.equal(addressOf({ repository }), undefined)
})

test("links of a README lead to files and folders of the version's tag", () => {
  const text = "[a](../core) [b](../../docs/cli.md#plan) [c](#here) [d](https://example.com)"
  assert.equal(
    fillText(text, "packages/cli", address, "@requeue/cli@1.2.3"),
    `[a](${address}/tree/@requeue/cli@1.2.3/packages/core) [b](${address}/blob/@requeue/cli@1.2.3/docs/cli.md#plan) [c](#here) [d](https://example.com)`
  )
})

test("every package is fit for npm once it is filled, and says what it lacks before", () => {
  const folder = mkdtempSync(join(tmpdir(), "requeue-release-"))
  try {
    for (const one of published) {
      assert.deepEqual(
        problems(join(root, one.folder)).filter((problem) => !problem.startsWith("README.md has a link")),
        ["repository", "homepage", "bugs"].map((field) => `package.json has no ${field}`),
        one.folder
      )
      assert.match(one.manifest.scripts.prepublishOnly, /publishable\.mjs$/, one.folder)
    }
    for (const { after, file } of changes(address)) {
      if (file.endsWith("package.json")) writeFileSync(join(folder, "package.json"), after)
      if (file.endsWith("README.md")) writeFileSync(join(folder, "README.md"), after)
      if (file.endsWith("README.md")) assert.deepEqual(problems(folder), [], file)
    }
  } finally {
    rmSync(folder, { recursive: true })
  }
})

test("the alerts have the address of their runbook", () => {
  const alerts = changes(address).filter(({ file }) => file.endsWith(".yaml"))
  assert.equal(alerts.length, 1)
  assert.match(alerts[0].after, /^ +runbook: https:\/\/github\.com\/acme\/requeue\/blob\/.*\/docs\/drill\.md$/m)
  assert.doesNotMatch(alerts[0].after, /^ +runbook: docs/m)
})

test("no page of the repository has a link that leads nowhere", () => {
  const pages = globSync(
    ["*.md", "docs/**/*.md", "project/**/*.md", "benchmarks/*.md", "packages/*/*.md", "apps/*/*.md", "tools/*/*.md"],
    { cwd: root }
  )
  const dead = pages
    .filter((page) => !/(^|\/)CHANGELOG\.md$|^docs\/reference\//.test(page.replaceAll("\\", "/")))
    .flatMap((page) => deadLinks(page).map(({ link }) => `${page}: ${link}`))
  assert.deepEqual(dead, [])
  assert.ok(linksOf(readFileSync(join(root, "README.md"), "utf8"), ".").length > 20)
})

test("the README says that nothing is published until something is", () => {
  const unpublished = published.every(({ manifest }) => manifest.version === "0.0.0")
  const says = readFileSync(join(root, "README.md"), "utf8").includes("**Nothing is published yet**")
  assert.equal(says, unpublished, "Remove the paragraph from README.md with the first release")
})
