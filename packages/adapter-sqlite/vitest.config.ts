export { default } from "../../scripts/vitest.config.mjs"
