/**
 * `npm run api` writes `api/PACKAGE.api.md` for every published package: its imports with their names and types, as the compiler
 * declares the sources. `--check` writes nothing, and fails with the difference if a report differs from the sources. `--root DIR`
 * reads another checkout.
 */
import { spawnSync } from "node:child_process"
import { globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { basename, dirname, join, resolve } from "node:path"
import { parseArgs } from "node:util"
import { report } from "./api/report.mjs"
import * as workspace from "./workspace.mjs"

/** The declarations of all packages in a checkout, without comments, by source. It checks no types: another check does. */
const declare = (root, folder) => {
  const config = join(folder, "tsconfig.json")
  const compilerOptions = {
    allowImportingTsExtensions: false,
    declaration: true,
    emitDeclarationOnly: true,
    noCheck: true,
    noEmit: false,
    outDir: folder,
    removeComments: true,
    rewriteRelativeImportExtensions: true,
    rootDir: root,
    typeRoots: [join(workspace.root, "node_modules", "@types")]
  }
  const include = [join(root, "packages", "*", "src")]
  const settings = { extends: join(workspace.root, "tsconfig.test.json"), compilerOptions, include }
  writeFileSync(config, JSON.stringify(settings))
  const { error, status, stdout } = spawnSync("tsc", ["-p", config], {
    encoding: "utf8",
    shell: process.platform === "win32"
  })
  if (status !== 0) throw new Error(`The compiler made no declarations: ${error?.message ?? stdout}`)
  return Object.fromEntries(
    globSync("packages/*/src/**/*.d.ts", { cwd: folder }).map((file) => [
      file.replaceAll("\\", "/").replace(/\.d\.ts$/, ".ts"),
      readFileSync(join(folder, file), "utf8")
    ])
  )
}

/** The reports of a checkout, by package. */
const reports = (root, folder) => {
  const declarations = Object.entries(declare(root, folder))
  return globSync("packages/*/package.json", { cwd: root }).flatMap((file) => {
    const manifest = JSON.parse(readFileSync(join(root, file), "utf8"))
    const home = dirname(file).replaceAll("\\", "/")
    const own = declarations.filter(([source]) => source.startsWith(`${home}/`))
    const text = manifest.private === true ? undefined : report(home, manifest, Object.fromEntries(own))
    return text === undefined ? [] : [[`${basename(home)}.api.md`, text]]
  })
}

const { check, root: given } = parseArgs({
  options: { check: { type: "boolean", default: false }, root: { type: "string", default: workspace.root } }
}).values
const root = resolve(given)
const folder = mkdtempSync(join(tmpdir(), "requeue-api-"))
try {
  const made = reports(root, folder)
  const target = check ? join(folder, "made") : join(root, "api")
  rmSync(target, { recursive: true, force: true })
  mkdirSync(target)
  for (const [file, text] of made) writeFileSync(join(target, file), text)
  if (check) {
    const options = ["--no-index", "--no-color", "--no-prefix", "-U1"]
    const { error, status, stderr, stdout } = spawnSync("git", ["diff", ...options, "--", "api", target], {
      cwd: root,
      encoding: "utf8",
      maxBuffer: 2 ** 28
    })
    if (status !== 0) {
      const said = error?.message ?? `${stdout}${stderr}`
      console.error(
        `The public API differs from the reports in api/. To accept it, run npm run api and commit them.\n\n${said}`
      )
      process.exitCode = 1
    }
  }
} finally {
  rmSync(folder, { recursive: true, force: true })
}
