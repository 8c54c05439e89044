import { register } from "./suite.ts"

await register("fauxqs", 400)
