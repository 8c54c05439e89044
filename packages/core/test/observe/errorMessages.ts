/** Messages of errors as libraries write them, and their patterns, by library. */
export const messages: ReadonlyArray<readonly [message: string, pattern: string]> = [
  // net and dns of Node
  ["connect ECONNREFUSED 127.0.0.1:5432", "connect ECONNREFUSED <addr>"],
  ["connect ECONNREFUSED ::1:6379", "connect ECONNREFUSED <addr>"],
  ["connect EHOSTUNREACH 10.0.0.3:9092 - Local (10.0.0.5:51234)", "connect EHOSTUNREACH <addr> - Local (<addr>)"],
  ["connect ETIMEDOUT 2001:db8::8a2e:370:7334:443", "connect ETIMEDOUT <addr>"],
  ["read ECONNRESET", "read ECONNRESET"],
  ["write EPIPE", "write EPIPE"],
  ["socket hang up", "socket hang up"],
  ["getaddrinfo ENOTFOUND api.stripe.com", "getaddrinfo ENOTFOUND api.stripe.com"],
  ["getaddrinfo EAI_AGAIN db-1.internal", "getaddrinfo EAI_AGAIN db-<num>.internal"],
  // fs of Node
  [
    "ENOENT: no such file or directory, open '/var/lib/app/2026/report-4711.csv'",
    "ENOENT: no such file or directory, open <str>"
  ],
  ["EACCES: permission denied, mkdir '/data/x'", "EACCES: permission denied, mkdir <str>"],
  ["EMFILE: too many open files, watch", "EMFILE: too many open files, watch"],
  ["ENOSPC: no space left on device, write", "ENOSPC: no space left on device, write"],
  // TLS
  ["self-signed certificate in certificate chain", "self-signed certificate in certificate chain"],
  ["certificate has expired", "certificate has expired"],
  [
    "Hostname/IP does not match certificate's altnames: Host: a.example. is not in the cert's altnames: DNS:*.b.example",
    "Hostname/IP does not match certificate's altnames: Host: a.example. is not in the cert's altnames: DNS:*.b.example"
  ],
  [
    "write EPROTO 140735:error:0A00010B:SSL routines:ssl3_get_record:wrong version number:../deps/openssl/ssl3_record.c:354:",
    "write EPROTO <num>:error:<id>:SSL routines:ssl<num>_get_record:wrong version number:<path>:"
  ],
  // undici, fetch
  ["fetch failed", "fetch failed"],
  [
    "Connect Timeout Error (attempted address: api.example.com:443, timeout: 10000ms)",
    "Connect Timeout Error (attempted address: <addr>, timeout: <duration>)"
  ],
  ["Headers Timeout Error", "Headers Timeout Error"],
  ["other side closed", "other side closed"],
  ["The operation was aborted due to timeout", "The operation was aborted due to timeout"],
  ["Failed to parse URL from /v1/orders", "Failed to parse URL from <path>"],
  // axios
  ["Request failed with status code 503", "Request failed with status code 503"],
  ["Request failed with status code 404", "Request failed with status code 404"],
  ["timeout of 5000ms exceeded", "timeout of <duration> exceeded"],
  ["maxContentLength size of 2000 exceeded", "maxContentLength size of <num> exceeded"],
  // other HTTP clients
  ["Response code 404 (Not Found)", "Response code 404 (Not Found)"],
  [
    "POST https://api.example.com/v1/charges?x=1 failed: 503 Service Unavailable",
    "POST <url> failed: 503 Service Unavailable"
  ],
  ["HTTP/1.1 502 Bad Gateway", "HTTP/1.1 502 Bad Gateway"],
  ["upstream returned 502 for order 17", "upstream returned 502 for order <num>"],
  ['{"error":{"code":503,"message":"down"}}', "{error:{code:503,message:<str>}}"],
  // pg
  [
    'duplicate key value violates unique constraint "users_email_key"',
    "duplicate key value violates unique constraint users_email_key"
  ],
  ['relation "orders" does not exist', "relation <str> does not exist"],
  [
    'null value in column "customer_id" of relation "orders" violates not-null constraint',
    "null value in column customer_id of relation <str> violates not-null constraint"
  ],
  ['invalid input syntax for type uuid: "abc"', "invalid input syntax for type uuid: <str>"],
  ["canceling statement due to statement timeout", "canceling statement due to statement timeout"],
  ["sorry, too many clients already", "sorry, too many clients already"],
  ["Connection terminated unexpectedly", "Connection terminated unexpectedly"],
  // mysql2
  ["Duplicate entry 'alice@example.com' for key 'users.email'", "Duplicate entry <str> for key <str>"],
  ["Table 'shop.orders' doesn't exist", "Table <str> doesn't exist"],
  [
    "Access denied for user 'app'@'10.0.0.4' (using password: YES)",
    "Access denied for user <str>@<str> (using password: YES)"
  ],
  [
    "Deadlock found when trying to get lock; try restarting transaction",
    "Deadlock found when trying to get lock; try restarting transaction"
  ],
  // ioredis
  [
    'Reached the max retries per request limit (which is 20). Refer to "maxRetriesPerRequest" option for details.',
    "Reached the max retries per request limit (which is <num>). Refer to <str> option for details."
  ],
  [
    "WRONGTYPE Operation against a key holding the wrong kind of value",
    "WRONGTYPE Operation against a key holding the wrong kind of value"
  ],
  ["MOVED 3999 127.0.0.1:6381", "MOVED <num> <addr>"],
  ["READONLY You can't write against a read only replica.", "READONLY You can't write against a read only replica."],
  // mongodb, mongoose
  [
    "E11000 duplicate key error collection: shop.orders index: _id_ dup key: { _id: ObjectId('507f1f77bcf86cd799439011') }",
    "E11000 duplicate key error collection: shop.orders index: _id_ dup key: { _id: ObjectId(<str>) }"
  ],
  ["Server selection timed out after 30000 ms", "Server selection timed out after <duration>"],
  ["connection 5 to 10.0.0.2:27017 closed", "connection <num> to <addr> closed"],
  [
    'Cast to ObjectId failed for value "abc" (type string) at path "_id" for model "User"',
    "Cast to ObjectId failed for value <str> (type string) at path <str> for model <str>"
  ],
  // AWS SDK
  [
    "User: arn:aws:iam::123456789012:user/bob is not authorized to perform: sqs:SendMessage on resource: arn:aws:sqs:eu-west-1:123456789012:orders",
    "User: <arn> is not authorized to perform: sqs:SendMessage on resource: <arn>"
  ],
  ["The security token included in the request is expired", "The security token included in the request is expired"],
  ["UnknownError: 503", "UnknownError: 503"],
  [
    "Inaccessible host: `sqs.example.com' at port `undefined'. This service may not be available in the `eu-west-1' region.",
    "Inaccessible host: <str> at port <str>. This service may not be available in the <str> region."
  ],
  // payments
  ["No such customer: 'cus_NffrFeUfNV2Hib'", "No such customer: <str>"],
  [
    "No such payment_intent: pi_3MtwBwLkdIwHu7ix28a3tqPa; request-id: req_8fj3kd92ksl",
    "No such payment_intent: <id>; request-id: <id>"
  ],
  ["Your card was declined.", "Your card was declined."],
  ["Amount must be at least $0.50 usd", "Amount must be at least $<num> usd"],
  // zod, ajv
  [
    '[ { "code": "invalid_type", "expected": "string", "path": [ "user", "email" ], "message": "Required" } ]',
    "[ { code: invalid_type, expected: <str>, path: [ <str> ], message: <str> } ]"
  ],
  [
    "✖ Invalid input: expected string, received number\n  → at user.email",
    "✖ Invalid input: expected string, received number → at user.email"
  ],
  ["data/items/0/price must be number", "data/items/<num>/price must be number"],
  ["data must have required property 'name'", "data must have required property <str>"],
  // JSON.parse
  ['Unexpected token \'h\', "hello "wor"... is not valid JSON', "Unexpected token <str> is not valid JSON"],
  ["Unexpected end of JSON input", "Unexpected end of JSON input"],
  [
    "Expected property name or '}' in JSON at position 1 (line 1 column 2)",
    "Expected property name or <str> in JSON at position <num> (line <num> column <num>)"
  ],
  // Effect, and this package
  ['Expected string, got 42\n  at ["user"]["email"]', "Expected string, got <num> at [user][email]"],
  ["handlerTimeout: the handler did not end within 30s", "handlerTimeout: the handler did not end within <duration>"],
  ["Operation timed out after '5 seconds'", "Operation timed out after <str>"],
  // JavaScript
  ["Cannot read properties of undefined (reading 'routes')", "Cannot read properties of undefined (reading <str>)"],
  ["x.foo is not a function", "x.foo is not a function"],
  ["Maximum call stack size exceeded", "Maximum call stack size exceeded"],
  // other brokers and databases
  [
    "Channel closed by server: 404 (NOT-FOUND) with message \"NOT_FOUND - no queue 'x' in vhost '/'\"",
    "Channel closed by server: 404 (NOT-FOUND) with message <str>"
  ],
  [
    "14 UNAVAILABLE: No connection established. Last error: connect ECONNREFUSED 10.0.0.1:50051",
    "<num> UNAVAILABLE: No connection established. Last error: connect ECONNREFUSED <addr>"
  ],
  ["SQLSTATE[42P01]: Undefined table", "SQLSTATE[42P01]: Undefined table"],
  ["ORA-00942: table or view does not exist", "ORA-00942: table or view does not exist"],
  // people
  ["order 503 not found", "order <num> not found"],
  ["user 0f8fad5b-d9cb-469f-a165-70867728950e not found", "user <id> not found"],
  ["job 01ARZ3NDEKTSV4RRFFQ69G5FAV failed", "job <id> failed"],
  [
    "lease of order-17 expired at 2026-11-23T20:50:44.123Z, not since Mon, 23 Nov 2026 20:50:44 GMT",
    "lease of order-<num> expired at <time>, not since <time>"
  ],
  ["body of 5.2 MB exceeds 256 KiB", "body of <size> exceeds <size>"],
  ["ids 1, 2, 3 and 4 are missing", "ids <num> and <num> are missing"],
  ["no mail to bob@example.com; see C:\\mails\\bob.txt", "no mail to <email>; see <path>"],
  ["  \u001b[31mdown\u001b[39m\n    at main (/srv/main.js:1:2)", "down"],
  ["", ""],
  ['he said "I will not', "he said <str>"]
]
