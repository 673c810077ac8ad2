/** Writes 300,000 times a, then b, and so on, to the file in its first argument. Prints `ready` after the first two writes. */
import { readHostFile, writeHostFile } from '../../src/cli/hosts/files.ts'

const [file = ''] = process.argv.slice(2)
for (let i = 0; ; i++) {
  const letter = i % 2 === 0 ? 'a' : 'b'
  await writeHostFile(await readHostFile(file), letter.repeat(300_000))
  if (i === 1) process.stdout.write('ready')
}
