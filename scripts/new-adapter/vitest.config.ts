import { mergeConfig } from "vitest/config"
import shared from "../../scripts/vitest.config.mjs"

// The first case that fails ends the run. Once most of them pass, the ledger of all of them says more. Then this file is
// `export { default } from "../../scripts/vitest.config.mjs"`.
export default mergeConfig(shared, { test: { bail: 1 } })
