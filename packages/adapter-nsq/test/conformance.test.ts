import { register } from "./suite.ts"
import { lateness } from "./world.ts"

await register("", 1, { by: "address", lateness })
