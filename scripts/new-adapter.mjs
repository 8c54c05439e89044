/**
 * `npm run new-adapter -- NAME` makes `packages/adapter-NAME` from the template in `scripts/new-adapter`: a package that
 * passes every check, and whose conformance suite fails until it is written. In the template the broker is called Acme.
 */
import { spawnSync } from "node:child_process"
import { existsSync, globSync, mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { dirname, join, relative } from "node:path"
import { fileURLToPath } from "node:url"
import { explain, pnpm } from "./run.mjs"
import { packageManager, root } from "./workspace.mjs"

const template = fileURLToPath(new URL("new-adapter", import.meta.url))

const help = `npm run new-adapter -- NAME [--leased]

Makes packages/adapter-NAME, a package that passes every check and fails the conformance suite until it is written, and a
changeset for it. Then it links the package into the workspace, which adds it to pnpm-lock.yaml.

With --leased, deliveries have leases that are renewed. Without it, they end with their connection.

NAME is the broker's name and the scheme of its URLs: small letters and digits, with dashes between them.

"Add an adapter" in CONTRIBUTING.md says what comes next.`

/** The name with capitals, for the names of modules: `RedisStreams` of `redis-streams`. */
const pascal = (name) => name.replaceAll(/(?:^|-)(.)/g, (_, letter) => letter.toUpperCase())

/** In one pass, because the name may contain what is replaced. */
const renamed = (text, name) => {
  const forms = { Acme: pascal(name), ACME: name.toUpperCase().replaceAll("-", "_"), acme: name }
  return text.replaceAll(/Acme|ACME|acme/g, (form) => forms[form])
}

/** The end of a line that only adapters with leases have, or only those without. */
const marker = / *(?:\/\/|<!--) (leased|unleased)(?: -->)?$/

/** Removes the lines of the other kind, and the markers. */
const ofKind = (text, isLeased) =>
  text
    .split("\n")
    .filter((line) => marker.exec(line)?.[1] !== (isLeased ? "unleased" : "leased"))
    .map((line) => line.replace(marker, ""))
    .join("\n")

/** Files that only adapters with leases have. */
const leased = /extend\.ts$/

/** Returns why there can be no adapter of this name, with a remedy; `undefined` if there can be. */
export const refusal = (name, into) => {
  if (name === undefined) return "NAME is missing. Write, for example: npm run new-adapter -- redis"
  if (!/^[a-z][a-z0-9]*(-[a-z0-9]+)*$/.test(name)) {
    return `"${name}" is not a valid name for an adapter. Use small letters and digits with dashes between them, such as redis-streams`
  }
  const folder = `packages/adapter-${name}`
  if (existsSync(join(into, folder))) return `${folder} is there already. Choose another name, or remove the folder`
  return undefined
}

/** Files that are the same in every adapter. */
const shared = ["tsconfig.json", "tsconfig.test.json"]

/** Makes the package of an adapter in a workspace, and its changeset; returns the files. */
export const make = (name, into, isLeased = false) => {
  const folder = `packages/adapter-${name}`
  const targets = {
    ...Object.fromEntries(shared.map((file) => [`${folder}/${file}`, join(root, "packages", "adapter-memory", file)])),
    ...Object.fromEntries(
      globSync("**/*.*", { cwd: template, withFileTypes: true })
        .filter((entry) => entry.isFile())
        .map(({ name: file, parentPath }) => join(parentPath, file))
        .filter((source) => isLeased || !leased.test(source))
        .map((source) => {
          const file = relative(template, source).replaceAll("\\", "/")
          return [
            file === "changeset.md" ? `.changeset/adapter-${name}.md` : `${folder}/${renamed(file, name)}`,
            source
          ]
        })
    )
  }
  for (const [target, source] of Object.entries(targets)) {
    mkdirSync(dirname(join(into, target)), { recursive: true })
    writeFileSync(join(into, target), renamed(ofKind(readFileSync(source, "utf8"), isLeased), name))
  }
  return Object.keys(targets).toSorted()
}

const run = (name, ...args) =>
  spawnSync(name, args, { cwd: root, encoding: "utf8", shell: process.platform === "win32" })

/** Formats it, because names are longer or shorter than Acme, links it into the workspace, and reports its API. */
const link = (folder) => {
  const formatted = run("oxfmt", folder)
  // The lockfile has no entry for the package yet.
  const installed = formatted.status === 0 ? pnpm(["install", "--no-frozen-lockfile"]) : formatted
  const reported = installed.status === 0 ? run("node", "scripts/api.mjs") : installed
  if (reported.status !== 0) explain(reported)
  return reported.status === 0
}

const main = (args) => {
  const isLeased = args.includes("--leased")
  const [name, ...rest] = args.filter((each) => each !== "--leased")
  if (name === "--help" || name === "-h") return console.log(help)
  const refused = rest.length > 0 ? `One NAME is enough, without ${rest.join(" ")}` : refusal(name, root)
  if (refused !== undefined) {
    console.error(refused)
    process.exitCode = 2
    return undefined
  }
  for (const file of make(name, root, isLeased)) console.log(`made ${file}`)
  const pnpx = `npx ${packageManager}`
  if (!link(`packages/adapter-${name}`)) {
    console.error(
      `The package is not linked into the workspace. Run: ${pnpx} install --no-frozen-lockfile && npm run api`
    )
    process.exitCode = 1
    return undefined
  }
  return console.log(`
Its suite fails, and says what to write first:
  ${pnpx} --filter @requeue/adapter-${name} test
The steps are in CONTRIBUTING.md, "Add an adapter".`)
}

if (import.meta.main) main(process.argv.slice(2))
