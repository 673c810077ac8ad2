// A minimal process of Node, which answers the first line with one line.
process.stdin.once('data', () => process.stdout.write('{"jsonrpc":"2.0","id":1,"result":{}}\n'))
