import { register } from "./suite.ts"

await register("", 1, { by: "address", lateness: 100 })
