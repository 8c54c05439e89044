/** Projects outside the workspace, and programs that run in them. */
import { execFile } from "node:child_process"
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { explain } from "../run.mjs"
import "../kept.mjs"

/** The folder of all projects, which is removed at the end. */
export const home = mkdtempSync(join(tmpdir(), "requeue-pack-"))
process.on("exit", () => rmSync(home, { recursive: true, force: true }))

/** The result of a program; `code` is undefined if it could not be run, or took longer than this many milliseconds. */
export const call = (command, args, cwd, timeout = 300_000) =>
  new Promise((resolve) => {
    const options = { cwd, shell: process.platform === "win32", timeout }
    execFile(command, args, options, (error, stdout, stderr) => {
      const code = error === null ? 0 : typeof error.code === "number" ? error.code : undefined
      resolve({ code, stdout, stderr, error })
    })
  })

/** The same for other dependencies. */
export const must = async (command, args, cwd) => {
  const result = await call(command, args, cwd)
  if (result.code === 0) return result
  explain(result)
  process.exit(1)
}

/** An empty project with these files, by their names, and these packages in it. */
export const project = async (name, files, ...wanted) => {
  const folder = join(home, name)
  for (const [file, text] of Object.entries({
    "package.json": JSON.stringify({ name: "empty", private: true }),
    ...files
  })) {
    mkdirSync(dirname(join(folder, file)), { recursive: true })
    writeFileSync(join(folder, file), text)
  }
  await must("npm", ["install", "--no-audit", "--no-fund", "--loglevel=error", ...wanted], folder)
  return folder
}

/** A folder next to the projects with one file, and no packages. */
export const alone = (name, file) => {
  const folder = join(home, name)
  cpSync(file, join(folder, "main.mjs"))
  return folder
}
