import { mergeConfig } from "vitest/config"
import shared from "../../scripts/vitest.config.mjs"

// The first failing case ends the run. Once most of them pass, the ledger of all of them shows more. Then this file is
// `export { default } from "../../scripts/vitest.config.mjs"`.
export default mergeConfig(shared, { test: { bail: 1 } })
