/** The conformance suite on PostgreSQL, with lateness. */
import { register } from "../real/suite.ts"

for (const part of ["quiet", "failing", "disturbed"] as const) await register(part, "judged")
