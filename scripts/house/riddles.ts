/** `npx tsx scripts/house/riddles.ts FOLDER...`: lists the comments and texts below folders of `src/` with a sentence that `riddleIn` finds. */
import { readSource } from './source.ts'
import { riddleIn } from './words.ts'

const folders = process.argv.slice(2)
const read = readSource().flatMap(({ file, comments, texts }) =>
  folders.length === 0 || folders.some((folder) => file.startsWith(folder)) ? [...comments, ...texts] : [],
)
const found = read.filter(({ text }) => riddleIn(text) !== undefined)
for (const { file, line, text } of found) process.stdout.write(`src/${file}:${line} ${text}\n`)
process.stdout.write(`${found.length} of ${read.length} comments and texts\n`)
