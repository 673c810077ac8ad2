// The least that Node takes: a process that answers any line with one line.
process.stdin.once('data', () => process.stdout.write('{"jsonrpc":"2.0","id":1,"result":{}}\n'))
