/**
 * Checks the pages: words that they do not use (`prose/words.yml`), the length of sentences, and the word budgets of
 * `docs/README.md`. `--words` prints the words of each page instead.
 */
import { globSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { createLinter, loadLinterFormatter, loadTextlintrc } from "textlint"
import { root } from "./workspace.mjs"

/** Words of all pages in docs/ and of the READMEs of packages together. */
export const maxTotal = 43_740

/** Words of a package's README. */
const maxReadme = 1000

const read = (file) => readFileSync(join(root, file), "utf8")

export const wordsIn = (text) => text.split(/\s+/).filter((word) => word !== "").length

/** The budgets in the table of an index: page to words. */
export const budgetsOf = (index) =>
  Object.fromEntries(
    [...index.matchAll(/^\| \[[^\]]+\]\(([^)]+)\) \|.*\| ([\d,]+) \|$/gm)].map(([, page, words]) => [
      page,
      Number(words.replaceAll(",", ""))
    ])
  )

/** Returns the errors in the length of pages: `sizes` has the words of each, `budgets` the maximum. */
export const overBudget = (sizes, budgets) => {
  const total = Object.values(sizes).reduce((sum, words) => sum + words, 0)
  const pages = Object.entries(sizes).flatMap(([page, words]) => {
    const max = budgets[page]
    if (max === undefined) return [`${page}: no budget: add the page to the table of docs/README.md`]
    return words > max ? [`${page}: ${words} words, ${max} allowed`] : []
  })
  const missing = Object.keys(budgets).filter((page) => !(page in sizes))
  return [
    ...pages,
    ...missing.map((page) => `${page}: docs/README.md lists it, and it does not exist`),
    ...(total > maxTotal ? [`docs and package READMEs: ${total} words, ${maxTotal} allowed`] : [])
  ]
}

const measured = () => {
  const docs = globSync("docs/*.md", { cwd: root }).toSorted()
  const readmes = globSync("packages/*/README.md", { cwd: root }).toSorted()
  const sizes = Object.fromEntries([...docs, ...readmes].map((file) => [file, wordsIn(read(file))]))
  const listed = Object.entries(budgetsOf(read("docs/README.md"))).map(([page, words]) => [`docs/${page}`, words])
  const budgets = Object.fromEntries([
    ...listed,
    ["docs/README.md", maxReadme],
    ...readmes.map((file) => [file, maxReadme])
  ])
  return { sizes, budgets }
}

if (import.meta.main) {
  const { budgets, sizes } = measured()
  if (process.argv.includes("--words")) {
    for (const [page, words] of Object.entries(sizes)) console.log(`${String(words).padStart(6)} ${page}`)
    console.log(`${String(Object.values(sizes).reduce((sum, words) => sum + words, 0)).padStart(6)} together`)
  } else {
    const descriptor = await loadTextlintrc({ configFilePath: join(root, "scripts/prose/textlint.json") })
    const pages = [...Object.keys(sizes), ...globSync("*.md", { cwd: root })].map((file) => join(root, file))
    const results = await createLinter({ descriptor }).lintFiles(pages)
    const problems = results.flatMap(({ messages }) => messages)
    const formatter = await loadLinterFormatter({ formatterName: "unix" })
    if (problems.length > 0) console.error(formatter.format(results))
    const over = overBudget(sizes, budgets)
    for (const line of over) console.error(line)
    console.log(`prose: ${pages.length} pages, ${problems.length + over.length} violations`)
    process.exitCode = problems.length + over.length === 0 ? 0 : 1
  }
}
