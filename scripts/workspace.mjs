/** The packages of the workspace. It must run on npm's Node, before anything is installed. */
import { existsSync, readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"

export const root = fileURLToPath(new URL("..", import.meta.url))

const readManifest = (folder) => JSON.parse(readFileSync(join(root, folder, "package.json"), "utf8"))

/** Name and version of the package manager, for npx. */
export const { packageManager } = readManifest(".")

const folders = ["packages", "apps", "tools"].flatMap((parent) =>
  existsSync(join(root, parent)) ? readdirSync(join(root, parent)).map((name) => `${parent}/${name}`) : []
)

export const packages = [...folders, "benchmarks"]
  .filter((folder) => existsSync(join(root, folder, "package.json")))
  .map((folder) => ({ folder, manifest: readManifest(folder) }))
