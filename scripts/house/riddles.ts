/** `npx tsx scripts/house/riddles.ts FOLDER...`: lists the comments below folders of `src/` with a sentence that `riddleIn` finds. */
import { readSource } from './source.ts'
import { riddleIn } from './words.ts'

const folders = process.argv.slice(2)
const comments = readSource().flatMap(({ file, comments }) =>
  folders.length === 0 || folders.some((folder) => file.startsWith(folder)) ? comments : [],
)
const found = comments.filter((comment) => riddleIn(comment.text) !== undefined)
for (const { file, line, text } of found) process.stdout.write(`src/${file}:${line} ${text}\n`)
process.stdout.write(`${found.length} of ${comments.length} comments\n`)
