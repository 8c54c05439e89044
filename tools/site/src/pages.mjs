/** The pages of the site, and the sidebar that follows from them. */
import { globSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { root } from "../../../scripts/workspace.mjs"

const patterns = [
  "*.md",
  "docs/*.md",
  "{packages,examples,apps,tools}/**/README.md",
  "benchmarks/README.md",
  "project/**/*.md"
]

const glob = (pattern) =>
  globSync(pattern, { cwd: root, exclude: (name) => name === "node_modules" || name === "dist" }).toSorted()

const read = (page) => readFileSync(join(root, page), "utf8")

/** The Markdown files that become pages, as paths from the root of the repository. */
export const findPages = () => glob(patterns)

/** All other Markdown files. */
export const findOthers = (pages) => glob("**/*.md").filter((file) => !pages.includes(file))

/** The place of a page on the site: a README is the index of its folder. */
export const toRoute = (page) => page.replace(/(^|\/)README\.md$/, "$1index.md")

/** The first heading of a page, without markup. */
export const titleOf = (text) => /^# (.+)$/m.exec(text)?.[1].replaceAll("`", "")

/** The pages of docs/ by their job, in the order of the table of docs/README.md: "learn", "do", "look up", "understand". */
export const jobsOf = (index) =>
  Object.groupBy(
    [...index.matchAll(/^\| \[[^\]]+\]\(([^)]+)\) \|[^|]*\| ([^:|]+):/gm)].map(([, file, job]) => ({
      page: `docs/${file}`,
      job
    })),
    ({ job }) => job
  )

const capitalized = (text) => text[0].toUpperCase() + text.slice(1)

/** The sidebar: the jobs of docs/, then what else there is. It has each page once. */
export const sidebarOf = (pages, read) => {
  const item = (page) => ({ text: titleOf(read(page)) ?? page, link: `/${toRoute(page)}` })
  const jobs = Object.entries(jobsOf(read("docs/README.md"))).map(([job, entries]) => ({
    text: capitalized(job),
    pages: entries.map(({ page }) => page)
  }))
  const start = ["README.md", "docs/README.md"]
  const used = new Set([...start, ...jobs.flatMap((group) => group.pages)])
  const rest = Object.groupBy(
    pages.filter((page) => !used.has(page)),
    (page) => {
      if (/^(examples|apps)\//.test(page)) return "examples"
      if (page.startsWith("packages/")) return "packages"
      return page.startsWith("project/decisions/") ? "decisions" : "contribute"
    }
  )
  const decisions = { text: "Decisions", collapsed: true, items: (rest.decisions ?? []).map(item) }
  return [
    { items: start.map(item) },
    ...jobs.map((group) => ({ text: group.text, items: group.pages.map(item) })),
    { text: "Examples", items: (rest.examples ?? []).map(item) },
    { text: "Packages", collapsed: true, items: (rest.packages ?? []).map(item) },
    { text: "Contribute", collapsed: true, items: [...(rest.contribute ?? []).map(item), decisions] }
  ]
}

/** The sidebar of this repository. */
export const sidebar = (pages) => sidebarOf(pages, read)
