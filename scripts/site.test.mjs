import assert from "node:assert/strict"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { test } from "node:test"
import { deadLinks } from "../tools/site/src/dead.mjs"
import { links, resolve } from "../tools/site/src/links.mjs"
import { findOthers, findPages, sidebar, sidebarOf, titleOf, toRoute } from "../tools/site/src/pages.mjs"
import { root } from "./workspace.mjs"

test("the sidebar follows the table of docs/README.md, and then come examples, packages and pages for contributors", () => {
  const table =
    "# Docs\n| page | reader | job | words |\n| --- | --- | --- | --- |\n" +
    "| [b](b.md) | new users | learn: a | 1 |\n| [c](c.md) | developers | look up: `x` | 1 |\n| [a](a.md) | all | learn: b | 1 |"
  const pages = {
    "README.md": "# Requeue",
    "SECURITY.md": "# Security",
    "docs/README.md": table,
    "docs/a.md": "text\n\n# Page `a`",
    "docs/b.md": "# B",
    "docs/c.md": "# C",
    "examples/README.md": "# Examples",
    "packages/core/README.md": "# @requeue/core",
    "project/decisions/0001.md": "# One"
  }
  const shown = sidebarOf(Object.keys(pages), (page) => pages[page]).map(({ items, text }) => [
    text,
    items.map((item) => item.link ?? item.items.map(({ link }) => link))
  ])
  assert.deepEqual(shown, [
    [undefined, ["/index.md", "/docs/index.md"]],
    ["Learn", ["/docs/b.md", "/docs/a.md"]],
    ["Look up", ["/docs/c.md"]],
    ["Examples", ["/examples/index.md"]],
    ["Packages", ["/packages/core/index.md"]],
    ["Contribute", ["/SECURITY.md", ["/project/decisions/0001.md"]]]
  ])
  assert.equal(titleOf(pages["docs/a.md"]), "Page a")
})

test("the sidebar has each page of the repository once", () => {
  const pages = findPages()
  const linked = (items) => items.flatMap((item) => (item.items === undefined ? [item.link] : linked(item.items)))
  assert.deepEqual(linked(sidebar(pages)).toSorted(), pages.map((page) => `/${toRoute(page)}`).toSorted())
  for (const page of ["README.md", "docs/options.md", "packages/core/README.md", "project/decisions/README.md"])
    assert.ok(pages.includes(page), page)
  assert.deepEqual(
    findOthers(pages).filter((file) => pages.includes(file)),
    []
  )
})

test("a link leads to a page, to the README of a folder, or to a file of the repository", () => {
  const pages = ["README.md", "docs/cli.md", "packages/core/README.md"]
  const files = new Set([...pages, "packages/core/src/a.ts"])
  const from = (page, href) => resolve(href, page, { pages, exists: (file) => files.has(file) })
  assert.deepEqual(from("packages/core/README.md", "../../docs/cli.md#plan"), { href: "/docs/cli.md#plan" })
  assert.deepEqual(from("docs/cli.md", "../packages/core/#a"), { href: "/packages/core/index.md#a" })
  assert.deepEqual(from("docs/cli.md", ".."), { href: "/index.md" })
  assert.deepEqual(from("packages/core/README.md", "src/a.ts"), { file: "packages/core/src/a.ts" })
  for (const href of ["#here", "https://example.com/a.md", "mailto:a@example.com", "missing.md"])
    assert.deepEqual(from("README.md", href), {})
})

const linked = (href, address) => {
  const token = (type) => ({
    type,
    tag: "a",
    attrs: type === "link_open" ? [["href", href]] : [],
    attrGet: () => href,
    attrSet: (_name, value) => void (token.href = value)
  })
  const children = [token("link_open"), token("link_close")]
  links({ core: { ruler: { push: (_name, rule) => (token.rule = rule) } } }, { address, pages: ["README.md"] })
  token.rule({ env: { realPath: join(root, "README.md") }, tokens: [{ children }] })
  return [token.href, children.map(({ tag }) => tag).join(" "), children[0].attrs.flat().join(" ")]
}

test("a link to a source leads to the repository, and is text while the repository has no address", () => {
  const address = "https://github.com/acme/requeue"
  assert.equal(linked("package.json", address)[0], `${address}/blob/main/package.json`)
  assert.equal(linked("scripts", address)[0], `${address}/tree/main/scripts`)
  assert.deepEqual(linked("package.json"), [
    undefined,
    "span span",
    "class source title package.json in the repository"
  ])
})

test("a link to a missing page, heading or image is dead", () => {
  const pages = new Map([
    [
      "index.html",
      '<h2 id="a-&-b">A</h2><a href="/docs/"></a><a class="x" href="/docs/#ö"></a><a href="#a-&amp;-b"></a>'
    ],
    [
      "docs/index.html",
      '<h2 id="ö">O</h2><a href="./gone.html"></a><a href="../index.html#gone"></a><a href="https://x.example/"></a><img src="/a.png">'
    ]
  ])
  const files = new Set([...pages.keys(), "reference/index.html"])
  assert.deepEqual(
    deadLinks(pages, files).map((line) => line.split(" ")[1]),
    ["./gone.html", "../index.html#gone", "/a.png"]
  )
  const below = new Map([
    ["index.html", '<a href="/requeue/reference/index.html"></a><a href="/reference/index.html"></a>']
  ])
  assert.deepEqual(deadLinks(below, files, "/requeue/"), ["index.html: /reference/index.html leads nowhere"])
})

test("the site has the text of the pages as it is: no page has frontmatter", () => {
  const has = findPages().filter((page) => readFileSync(join(root, page), "utf8").startsWith("---"))
  assert.deepEqual(has, [])
})
