import type { Tool, ToolApp } from '../../core/tool.ts'
import type { View } from '../../core/view.ts'
import { explorerTool } from './explorer.ts'
import { browseTool, listTool } from './list.ts'
import { readTool } from './read.ts'
import { searchTool } from './search.ts'

export { connectorTools } from './connector.ts'

/**
 * Returns tools for reading, for hosts without resources. They use the same view, so the same access rules apply. They hold no
 * state between requests.
 *
 * @param explorer The explorer as an app: with it comes the tool `browse`.
 */
export function resourceTools(view: View, explorer?: ToolApp): readonly Tool[] {
  return [
    ...[listTool(view), browseTool(view), readTool(view), searchTool(view)],
    ...(explorer === undefined ? [] : [explorerTool(view, explorer)]),
  ]
}
