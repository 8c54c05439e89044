/** What `npm install` of a package installs: its files, and those of its dependencies, without optional peers. */
import { execFileSync } from "node:child_process"
import { existsSync, readdirSync, readFileSync, realpathSync, statSync } from "node:fs"
import { createRequire } from "node:module"
import { join, relative } from "node:path"
import type { Workload } from "../../Contender.ts"

interface Manifest {
  readonly dependencies?: Readonly<Record<string, string>>
  readonly optionalDependencies?: Readonly<Record<string, string>>
  readonly peerDependencies?: Readonly<Record<string, string>>
  readonly peerDependenciesMeta?: Readonly<Record<string, { readonly optional?: boolean }>>
}

interface Size {
  readonly bytes: number
  readonly files: number
}

const folderOf = (name: string, dependent: string): string | undefined => {
  const folders = createRequire(join(dependent, "package.json")).resolve.paths(name) ?? []
  const found = folders.map((folder) => join(folder, name)).find((folder) => existsSync(join(folder, "package.json")))
  return found === undefined ? undefined : realpathSync(found)
}

const needsOf = (folder: string): ReadonlyArray<string> => {
  const manifest = JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as Manifest
  const peers = Object.keys(manifest.peerDependencies ?? {}).filter(
    (name) => manifest.peerDependenciesMeta?.[name]?.optional !== true
  )
  return [...Object.keys({ ...manifest.dependencies, ...manifest.optionalDependencies }), ...peers]
}

/** The folders of a package and of its dependencies. An optional one for another platform is missing. */
const closure = (folder: string, known = new Set<string>()): ReadonlySet<string> => {
  if (known.has(folder)) return known
  known.add(folder)
  for (const name of needsOf(folder)) {
    const needed = folderOf(name, folder)
    if (needed !== undefined) closure(needed, known)
  }
  return known
}

const sum = (sizes: ReadonlyArray<number>): number => sizes.reduce((all, size) => all + size, 0)

/** Files from a registry's tarball are unchanged there. */
const unpacked = (folder: string): Size => {
  const sizes = readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && !relative(folder, entry.parentPath).startsWith("node_modules"))
    .map((entry) => statSync(join(entry.parentPath, entry.name)).size)
  return { bytes: sum(sizes), files: sizes.length }
}

/** A package of the workspace, as it would be published. */
const packed = (folder: string): Size => {
  const args = ["pack", "--dry-run", "--json", "--ignore-scripts", "--loglevel=error"]
  const [report] = JSON.parse(
    execFileSync("npm", args, { cwd: folder, encoding: "utf8", shell: process.platform === "win32" })
  ) as [{ readonly unpackedSize: number; readonly entryCount: number }]
  return { bytes: report.unpackedSize, files: report.entryCount }
}

const sizeOf = (folder: string): Size => (folder.includes("node_modules") ? unpacked(folder) : packed(folder))

export const install: Workload<{ readonly module: string }> = async ({ module }, meter) => {
  const folder = folderOf(module, import.meta.dirname)
  if (folder === undefined) throw new Error(`${module} is not installed`)
  const own = sizeOf(folder)
  const sizes = [...closure(folder)].map((each) => (each === folder ? own : sizeOf(each)))
  meter.figure("own, kB", own.bytes / 1000)
  meter.figure("own files", own.files)
  meter.figure("all, kB", sum(sizes.map(({ bytes }) => bytes)) / 1000)
  meter.figure("all files", sum(sizes.map(({ files }) => files)))
  meter.figure("packages", sizes.length)
  meter.tick()
}
