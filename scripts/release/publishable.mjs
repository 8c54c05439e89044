/** Runs before a package is published (`prepublishOnly`), in its folder, and rejects one that is not fit for npm. */
import { problems } from "./address.mjs"

const found = problems(".")
if (found.length > 0) {
  console.error(`This package cannot be published as it is:\n${found.map((problem) => `- ${problem}`).join("\n")}`)
  console.error("Publish with `npm run release`, which fills in the repository's address.")
  process.exit(1)
}
