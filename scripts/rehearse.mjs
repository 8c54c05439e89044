/**
 * `npm run test:release` rehearses a release, in a copy of this checkout and on a registry on this machine: changesets become
 * versions, all packages are built and published, and installed by name in empty folders; then a project upgrades to a second
 * release. Nothing is published elsewhere, and nothing changes here. release-rehearsal.log has the output of each command.
 *
 * It cannot try provenance, for which npm asks GitHub and Sigstore, and npm's trust in the workflow.
 */
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { extract } from "./examples.mjs"
import { home, project } from "./pack/project.mjs"
import { failed, prints, refuses, verdict } from "./pack/verdict.mjs"
import { linksOf, published } from "./release/address.mjs"
import { commit, copyOfCheckout, git } from "./release/clone.mjs"
import { logged, say, writeLog } from "./release/log.mjs"
import { startRegistry } from "./release/registry.mjs"
import { root } from "./workspace.mjs"

const address = "https://github.com/acme/requeue"
const names = published.map(({ manifest }) => manifest.name)
const [{ lines }] = extract("README.md", readFileSync(join(root, "README.md"), "utf8"))
const hello = { "hello.mjs": lines.join("\n") }
const delivered = prints(/^attempt 1: .*\nattempt 2: .*\nattempt 3: .*\n$/, /a handler failed/)
/** The packages that the README installs, and the command. */
const wanted = ["@requeue/core", "@requeue/adapter-memory", "@requeue/cli"]
const at = (version) => wanted.map((name) => `${name}@${version}`)

const started = performance.now()
process.prependListener("exit", () => writeLog(join(root, "release-rehearsal.log")))
await startRegistry()
const checkout = await copyOfCheckout()
const npm = (...args) => logged("npm", args, checkout)
const latest = async (name) =>
  JSON.parse((await logged("npm", ["view", name, "version", "--json"], home)).stdout || "null")
const manifestOf = (folder) => JSON.parse(readFileSync(join(checkout, folder, "package.json"), "utf8"))

/** Versions, builds and publishes; returns the version of all packages. */
const release = async (what) => {
  await verdict(`${what}: changeset version`, npm("run", "changeset", "--", "version"), prints(/^/, /^/))
  const versions = [...new Set(published.map(({ folder }) => manifestOf(folder).version))]
  const version = String(versions[0])
  await verdict(`${what}: all packages have one version, ${version}`, {}, () =>
    versions.length === 1 ? undefined : `they have ${versions.join(", ")}`
  )
  await commit(checkout, `Version ${version}`)
  await verdict(`${what}: publish`, npm("run", "release"), prints(/^/, /^/))
  const found = await Promise.all(names.map(latest))
  await verdict(`${what}: ${names.length} packages are on the registry as ${version}`, {}, () =>
    found.every((one) => one === version) ? undefined : `there are ${found.join(", ")}`
  )
  const [left, tags] = await Promise.all([git(checkout, "status", "--porcelain"), git(checkout, "tag", "--list")])
  const untagged = names.filter((name) => !tags.split("\n").includes(`${name}@${version}`))
  await verdict(`${what}: a tag for each, and no file is left changed`, {}, () =>
    left === "" && untagged.length === 0 ? undefined : `changed: ${left}; without a tag: ${untagged.join(", ")}`
  )
  return version
}

/** Judges what npm shows of a package: addresses, keywords, peers of the same version, and links that lead somewhere. */
const judgePublished = async (name, version) => {
  const shown = JSON.parse((await logged("npm", ["view", `${name}@${version}`, "--json"], home)).stdout)
  const folder = await project(`shown/${name}`, {})
  await logged("npm", ["pack", "--silent", `${name}@${version}`], folder)
  await logged("tar", ["-xzf", `${name.slice(1).replace("/", "-")}-${version}.tgz`], folder)
  const readme = readFileSync(join(folder, "package", "README.md"), "utf8")
  const inTag = `${address}/(?:blob|tree)/${name}@${version}/`
  const paths = [...readme.matchAll(new RegExp(`\\]\\(${inTag}([^)#]+)`, "g"))].map(([, path]) => path)
  const there = await git(checkout, "ls-tree", "-r", "-t", "--name-only", `${name}@${version}`)
  const dead = paths.filter((path) => !there.split("\n").includes(path))
  const related = Object.entries({ ...shown.peerDependencies, ...shown.dependencies })
  const wrong = () => {
    if (!shown.repository?.url?.includes(`${address}.git`)) return `its repository is ${shown.repository?.url}`
    if (!shown.homepage?.startsWith(address) || !shown.bugs?.url?.startsWith(address)) return "it lacks addresses"
    if (!shown.keywords?.includes("requeue")) return "it has no keywords"
    const odd = related.filter(([peer, range]) => names.includes(peer) && range !== `^${version}`)
    if (odd.length > 0) return `it asks for ${odd.join(", ")}`
    if (linksOf(readme, "").length + dead.length > 0)
      return `dead links: ${[...linksOf(readme, "").map(({ link }) => link), ...dead].join(", ")}`
    return undefined
  }
  await verdict(`what npm shows of ${name}: addresses, keywords, peers, ${paths.length} links`, {}, wrong)
}

/** The project of a user: hello, the command by its name, and no warning of npm. */
const judgeProject = async (what, folder, version) => {
  await verdict(`${what}: hello`, logged(process.execPath, ["hello.mjs"], folder), delivered)
  const requeue = logged("npx", ["--no-install", "requeue", "--version"], folder)
  await verdict(`${what}: npx requeue --version`, requeue, prints(new RegExp(version.replaceAll(".", "\\."))))
  const { dependencies } = JSON.parse((await logged("npm", ["ls", "--json"], folder)).stdout)
  const odd = Object.entries(dependencies).filter(([name, one]) => names.includes(name) && one.version !== version)
  await verdict(`${what}: every package is ${version}, and npm ls has no complaint`, {}, () =>
    odd.length === 0 && !Object.values(dependencies).some((one) => one.problems)
      ? undefined
      : `found ${odd.map(([name]) => name).join(", ")}`
  )
}

say("Without an address")
await verdict("nothing is published", npm("run", "release"), refuses(1, /"repository": "git\+https/))
const alone = await npm("run", "changeset", "--", "publish")
await verdict("nor by changesets alone", alone, ({ code, stdout }) =>
  code !== 0 && stdout.includes("prepublishOnly") ? undefined : "it was not refused"
)
const guard = logged("npm", ["run", "prepublishOnly"], join(checkout, "packages/core"))
await verdict("a package says why", guard, refuses(1, /package\.json has no repository[^]*npm run release/))
await verdict("the registry has none", latest(names[0]), (found) => (found?.error ? undefined : `it has ${found}`))

say("The first release")
const manifest = { ...manifestOf("."), repository: `git+${address}.git` }
writeFileSync(join(checkout, "package.json"), `${JSON.stringify(manifest, null, 2)}\n`)
// The second release publishes this build as well: only versions differ.
const build = logged("npm", ["run", "build", "--", "--filter=./packages/*"], checkout, 1_200_000)
await verdict("build", build, prints(/^/, /^/))
const first = await release("first release")
for (const name of names) await judgePublished(name, first)
const user = await project("user", hello, ...wanted, "effect")
await judgeProject("installed by name", user, first)
await verdict(
  "npx @requeue/cli in an empty folder",
  logged("npx", ["--yes", "@requeue/cli", "--version"], await project("nothing", {})),
  prints(new RegExp(first.replaceAll(".", "\\.")), /^/)
)

say("The second release")
writeFileSync(join(checkout, ".changeset", "rehearsed.md"), '---\n"@requeue/core": minor\n---\n\nA second release.\n')
const second = await release("second release")
// npm rejects it, or continues with a warning, depending on the project's other packages.
await verdict(
  "for a mix, npm reports which package requires which",
  logged("npm", ["install", `@requeue/core@${second}`], user),
  ({ stderr }) =>
    stderr.includes(`@requeue/core@"^${first}" from @requeue/adapter-memory@${first}`) ? undefined : "it does not"
)
await verdict("upgrade", logged("npm", ["install", ...at(second)], user), prints(/^/))
await judgeProject("upgraded", user, second)

console.log(`${failed()} failed, after ${((performance.now() - started) / 1000).toFixed(0)} s`)
process.exitCode = failed() === 0 ? 0 : 1
