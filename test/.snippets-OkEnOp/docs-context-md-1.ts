import { connect } from 'hikidashi/client'
import { assemble } from 'hikidashi/context'

const view = await connect({ url: 'http://127.0.0.1:8787/mcp' })
const asked = { query: 'how cursors are sealed', budget: 8000, now: Date.now() }
const before = await assemble(view, asked)
const after = await assemble(view, { ...asked, earlier: before.manifest })
console.log(after.reusedPrefixTokens, after.tokens)
