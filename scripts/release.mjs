/**
 * `npm run release` publishes every package whose version is not on the registry yet, and sets a tag for each. While it runs,
 * manifests, READMEs and alerts have the repository's address; they are restored at the end. `changeset publish` receives the
 * other arguments. Without an address, nothing is published.
 */
import { writeFileSync } from "node:fs"
import { address, changes } from "./release/address.mjs"
import { run } from "./run.mjs"

const publish = () => {
  const all = changes(address())
  try {
    for (const { after, file } of all) writeFileSync(file, after)
    return run(["changeset", "publish", ...process.argv.slice(2)], { stdio: "inherit" }).status ?? 1
  } finally {
    for (const { before, file } of all) writeFileSync(file, before)
  }
}

try {
  process.exitCode = publish()
} catch (error) {
  console.error(error.message)
  process.exitCode = 1
}
