/**
 * `npm run tarballs -- FOLDER` builds every public package and packs it as it would be published, for a project that uses it
 * before the release: `npm install FOLDER/*.tgz effect`.
 */
import { mkdirSync } from "node:fs"
import { resolve } from "node:path"
import { run } from "./run.mjs"

const filters = ["--filter", "./packages/*"]

/** Builds and packs into a folder. The result is that of `spawnSync`. */
export const pack = (folder, options) => {
  const built = run(["turbo", "run", "build", "--filter=./packages/*"], options)
  if (built.status !== 0) return built
  mkdirSync(folder, { recursive: true })
  return run(["pnpm", "-r", ...filters, "pack", "--pack-destination", folder], options)
}

if (process.argv[1].endsWith("tarballs.mjs")) {
  const [folder] = process.argv.slice(2)
  if (folder === undefined) {
    console.error("npm run tarballs -- FOLDER: name the folder for the tarballs, outside of this repository")
    process.exit(2)
  }
  process.exitCode = pack(resolve(folder), { stdio: "inherit" }).status ?? 1
}
