/** Jest as docs/testing.md says: the test of that page in CommonJS, in TypeScript by ts-jest, and as an ES module. */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { extract } from "../examples.mjs"
import { root } from "../workspace.mjs"
import { call, project } from "./project.mjs"
import { prints, refuses, verdict } from "./verdict.mjs"

const page = readFileSync(join(root, "docs/testing.md"), "utf8")
const [{ lines }] = extract("docs/testing.md", page)
/** The page's test for Jest, and for a Node without `await using`. */
const program = lines
  .filter((line) => !line.includes("node:test"))
  .join("\n")
  .replace("await using broker", "const broker")
  .replace(/^(\s+)await broker\.expectNothingElse\(\)$/m, "$&\n$1await broker.close()")
const javaScript = program.replaceAll(/: Requeue|: \(url: string\) => Promise<void>|type Requeue, /g, "")
const imports = /^import (.+) from (.+)$/gm
const required = javaScript.replaceAll(
  imports,
  (_, what, from) => `const ${what.replace("* as ", "")} = require(${from})`
)
const awaited = javaScript
  .replaceAll(imports, "")
  .replace("await Testing.open()", 'await (await import("@requeue/adapter-memory/testing")).open()')
  .replace("const start", 'const assert = require("node:assert/strict")\nlet sequence\nconst start')
  .replace(/^(test\(.*)$/m, '$1\n  ;({ sequence } = await import("@requeue/core/promise"))')

const compilerOptions = {
  target: "es2022",
  module: "nodenext",
  moduleResolution: "nodenext",
  esModuleInterop: true,
  isolatedModules: true,
  strict: true,
  skipLibCheck: true
}
const json = (value) => JSON.stringify(value, undefined, 2)
const manifest = (type, jest) =>
  json({ name: "tests", private: true, type, jest: { testEnvironment: "node", ...jest } })

/** A folder for each kind of project, which finds the packages of the project around it. */
const files = {
  "required/package.json": manifest("commonjs"),
  "required/webhooks.test.js": required,
  "awaited/package.json": manifest("commonjs"),
  "awaited/webhooks.test.js": awaited,
  "module/package.json": manifest("commonjs", { testMatch: ["**/*.test.mjs"] }),
  "module/webhooks.test.mjs": javaScript,
  "compiled/package.json": manifest("commonjs", { preset: "ts-jest" }),
  "compiled/tsconfig.json": json({ compilerOptions }),
  "compiled/webhooks.test.ts": program,
  "kept/package.json": manifest("commonjs", { preset: "ts-jest/presets/default-esm" }),
  "kept/tsconfig.json": json({
    compilerOptions: { ...compilerOptions, module: "esnext", moduleResolution: "bundler" }
  }),
  "kept/webhooks.test.ts": program
}

const versions = ["jest@30.5.2", "ts-jest@29.4.15", "typescript@5.9.3", "@types/jest@30", "@types/node@24"]

/** Whether a Node lets Jest require an ES module: 24.9 and later. */
const requires = (version) => {
  const [major, minor] = version.replace("v", "").split(".").map(Number)
  return major > 24 || (major === 24 && minor >= 9)
}

/** `nodes` are names and programs, `wanted` the tarballs and their other dependencies. */
export const jest = async (nodes, ...wanted) => {
  const folder = await project("jest", files, ...wanted, ...versions)
  const passes = prints(/^/, /Tests: +1 passed, 1 total/)
  const fails = refuses(1, /Must use import to load ES Module/)
  for (const [name, node] of nodes) {
    const { stdout } = await call(node, ["--version"], folder)
    const without = requires(stdout.trim()) ? passes : fails
    const kinds = { required: without, compiled: without, awaited: passes, module: passes, kept: passes }
    for (const [kind, wrong] of Object.entries(kinds)) {
      const args = [
        "--experimental-vm-modules",
        join(folder, "node_modules", "jest", "bin", "jest.js"),
        "--no-watchman"
      ]
      await verdict(`${name}: Jest, ${kind}`, call(node, args, join(folder, kind)), wrong)
    }
  }
}
