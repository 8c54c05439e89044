/**
 * Packs every public package and checks the tarballs: publint checks the manifests and the files that they name, Are the Types
 * Wrong the declarations. Their commands would start several programs for each package.
 */
import { checkPackage, createPackageFromTarballData } from "@arethetypeswrong/core"
import { globSync, mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { publint } from "publint"
import { formatMessage } from "publint/utils"
import { explain } from "./run.mjs"
import { pack } from "./tarballs.mjs"

/** How CommonJS finds types: the packages are ES modules. */
const ignored = ["node10", "node16-cjs"]

/** The problems in a tarball, as lines. */
const problems = async (tarball) => {
  const { messages, pkg } = await publint({ pack: { tarball: tarball.buffer }, level: "error", strict: true })
  const { problems: wrongTypes = [] } = await checkPackage(createPackageFromTarballData(tarball))
  return [
    ...messages.map((message) => formatMessage(message, pkg, { color: false })),
    ...wrongTypes.filter(({ resolutionKind }) => !ignored.includes(resolutionKind)).map((it) => JSON.stringify(it))
  ]
}

const folder = mkdtempSync(join(tmpdir(), "requeue-packed-"))
try {
  const packed = pack(folder)
  if (packed.status !== 0) explain(packed)
  const files = globSync("*.tgz", { cwd: folder })
  const found = []
  for (const file of files) {
    const lines = await problems(new Uint8Array(readFileSync(join(folder, file))))
    found.push(...lines.map((line) => `${file}: ${line}`))
  }
  for (const line of found) console.error(line)
  console.log(`${files.length} tarballs, ${found.length} problems`)
  process.exitCode = packed.status === 0 && files.length > 0 && found.length === 0 ? 0 : 1
} finally {
  rmSync(folder, { recursive: true })
}
