/**
 * The repository's address is in one place, `repository` of the workspace's package.json. Published packages have it in their
 * manifest, in the links of their README and in the runbooks of their alerts; files in git have links that work in any clone.
 * Links lead to the published version, by its tag.
 */
import { existsSync, globSync, readFileSync, statSync } from "node:fs"
import { dirname, join, posix } from "node:path"
import { packages, root } from "../workspace.mjs"

/** The packages that are published. */
export const published = packages.filter(({ manifest }) => manifest.private !== true)

const readManifest = (folder) => JSON.parse(readFileSync(join(root, folder, "package.json"), "utf8"))

/** The address of a manifest's repository in a browser, `https://github.com/acme/requeue`; undefined without one. */
export const addressOf = ({ repository }) => {
  const url = typeof repository === "string" ? repository : repository?.url
  return /^(?:git\+)?(https:\/\/[^/]+\/[^/]+\/[^/]+?)(?:\.git)?\/?$/.exec(url ?? "")?.[1]
}

/** The address of this repository, or an error that says where to set it. */
export const address = () => {
  const found = addressOf(readManifest("."))
  if (found !== undefined) return found
  throw new Error(
    "The address of the repository is not set, so nothing can be published: npm links to it, and its provenance names it.\n" +
      'Set it once, in package.json of the workspace: "repository": "git+https://github.com/OWNER/requeue.git"'
  )
}

/** The manifest of a package as it is published. */
export const fillManifest = (manifest, folder, address) => ({
  ...manifest,
  repository: { type: "git", url: `git+${address}.git`, directory: folder },
  homepage: `${address}/tree/main/${folder}#readme`,
  bugs: { url: `${address}/issues` }
})

/** Markdown's links to places in the repository, in READMEs of published packages. */
const relativeLink = /\]\((?!https?:|mailto:|#)([^)#\s]*)(#[^)\s]*)?\)/g

/** The relative links of a text: the path from the root of the repository that each leads to, and its anchor. */
export const linksOf = (text, folder) =>
  [...text.matchAll(relativeLink)].map(([link, path, anchor]) => ({
    link,
    path: posix.normalize(posix.join(folder, path)).replace(/\/$/, ""),
    anchor: anchor?.slice(1)
  }))

/** The text of a README, or of alerts, as it is published: links to files of the clone lead to those of the tag. */
export const fillText = (text, folder, address, tag) => {
  const target = (path) => {
    const kind = statSync(join(root, path)).isDirectory() ? "tree" : "blob"
    return `${address}/${kind}/${tag}/${path}`
  }
  const linked = text.replaceAll(relativeLink, (link, _path, anchor = "") => {
    const [{ path }] = linksOf(link, folder)
    return `](${target(path)}${anchor})`
  })
  return linked.replaceAll(/^(\s+runbook: )(docs\/\S+)$/gm, (_line, start, path) => `${start}${target(path)}`)
}

/** Every changed file of a package, with the function that fills its text. */
const filled = ({ folder, manifest }, address) => {
  const tag = `${manifest.name}@${manifest.version}`
  const text = (file) => [file, (before) => fillText(before, folder, address, tag)]
  return [
    ["package.json", (before) => `${JSON.stringify(fillManifest(JSON.parse(before), folder, address), null, 2)}\n`],
    ...["README.md", ...globSync("prometheus/*.yaml", { cwd: join(root, folder) })].map(text)
  ]
}

/** What publishing changes: each file with its text in git and its text as it is published. */
export const changes = (address) =>
  published.flatMap((one) =>
    filled(one, address).map(([name, fill]) => {
      const file = join(root, one.folder, name)
      const before = readFileSync(file, "utf8")
      return { file, before, after: fill(before) }
    })
  )

/** Returns what keeps the package in this folder from being published; an empty list if nothing does. */
export const problems = (folder) => {
  const manifest = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"))
  const readme = join(folder, "README.md")
  const links = existsSync(readme) ? linksOf(readFileSync(readme, "utf8"), "") : []
  const missing = ["description", "keywords", "license", "repository", "homepage", "bugs"]
    .filter((field) => manifest[field] === undefined)
    .map((field) => `package.json has no ${field}`)
  return [
    ...missing,
    ...(existsSync(readme) ? [] : ["there is no README.md"]),
    ...links.map(({ link }) => `README.md has a link that is dead on npm: ${link}`)
  ]
}

/** The anchor that GitHub makes of a heading. */
export const anchorOf = (heading) =>
  heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\s_-]/gu, "")
    .trim()
    .replaceAll(/\s/g, "-")

const anchorsOf = (page) => [...page.matchAll(/^#+ (.+)$/gm)].map(([, heading]) => anchorOf(heading))

/** The relative links of a page that lead nowhere. */
export const deadLinks = (file) => {
  const text = readFileSync(join(root, file), "utf8")
  return linksOf(text, dirname(file)).filter(({ anchor, path }) => {
    const place = join(root, path === "" ? file : path)
    if (!existsSync(place)) return true
    if (anchor === undefined) return false
    const page = statSync(place).isDirectory() ? join(place, "README.md") : place
    return !anchorsOf(readFileSync(page, "utf8")).includes(anchor)
  })
}
