import { Unavailable } from "@requeue/brokers"
import { test } from "vitest"
import { register } from "../real/suite.ts"

try {
  await register("elasticmq", 700, "judged")
} catch (cause) {
  if (!(cause instanceof Unavailable)) throw cause
  test("conformance on ElasticMQ", ({ skip }) => skip(cause.message))
}
