import { register } from "../real/suite.ts"

// Four connections share what is often a credit of 2, so that a message may wait for its turn.
await register(", found by nsqlookupd", 2, { by: "nsqlookupd", lateness: 200 }, "judged")
