import { readFileSync } from "node:fs"
import { join } from "node:path"
import { defineConfig } from "vitepress"
import { addressOf, anchorOf } from "../../../scripts/release/address.mjs"
import { root } from "../../../scripts/workspace.mjs"
import { links } from "../src/links.mjs"
import { findOthers, findPages, sidebar, toRoute } from "../src/pages.mjs"

const readManifest = (folder) => JSON.parse(readFileSync(join(root, folder, "package.json"), "utf8"))
const address = addressOf(readManifest("."))
const pages = findPages()

export default defineConfig({
  title: "Requeue",
  description: readManifest("packages/core").description,
  lang: "en",
  // There is no icon, and browsers need not ask for one.
  head: [["link", { rel: "icon", href: "data:," }]],
  srcDir: root,
  srcExclude: findOthers(pages),
  outDir: "dist",
  cacheDir: join(root, "node_modules", ".cache", "vitepress"),
  rewrites: toRoute,
  // src/dead.mjs checks the pages that were built, with their headings and files.
  ignoreDeadLinks: true,
  markdown: {
    anchor: { slugify: anchorOf },
    // Braces in a heading are text on GitHub.
    attrs: { disable: true },
    config: (md) => {
      md.use(links, { address, pages })
      // Two braces are text, too.
      const { text } = md.renderer.rules
      md.renderer.rules.text = (...args) => text(...args).replaceAll("{{", "&#123;&#123;")
    }
  },
  themeConfig: {
    nav: [
      { text: "All pages", link: "/docs/index.md" },
      { text: "Examples", link: "/examples/index.md" },
      { text: "API reference", link: "/reference/index.html", target: "_self" }
    ],
    sidebar: sidebar(pages),
    outline: [2, 3],
    search: {
      provider: "local",
      // Pages for contributors come after pages for users.
      options: {
        miniSearch: {
          searchOptions: { boostDocument: (id) => (/\/(project|tools|benchmarks)\//.test(id) ? 0.4 : 1) }
        }
      }
    },
    socialLinks: address === undefined ? undefined : [{ icon: "github", link: address }]
  }
})
