export { Unavailable, type Broker, type Node, type StartOptions } from "./Broker.ts"
export { proxy, type Proxy } from "./proxy.ts"
export { strictSqs, type StrictSqs } from "./sqs/strict/proxy.ts"
export { start, type BrokerName } from "./start.ts"
