# Windows: makes a scheduled task that serves from the start of the machine. Run it in a PowerShell of an administrator.
# It runs as LOCAL SERVICE, who must be able to read the folders that are mounted, and to write to C:\ProgramData\hikidashi:
#   icacls C:\ProgramData\hikidashi /grant "*S-1-5-19:(OI)(CI)M"
# Stop-ScheduledTask hikidashi ends it at once, without an answer to the requests in flight.
$ErrorActionPreference = 'Stop'

# cmd.exe removes the outer quotes. The log is what it prints to standard error.
$arguments = '/d /s /c ""C:\Program Files\nodejs\node.exe" "C:\hikidashi\dist\cli\main.js" serve --config "C:\ProgramData\hikidashi\hikidashi.json" --log-format json 2>>"C:\ProgramData\hikidashi\hikidashi.log""'

$task = @{
  TaskName  = 'hikidashi'
  Action    = New-ScheduledTaskAction -Execute "$env:SystemRoot\System32\cmd.exe" -Argument $arguments -WorkingDirectory 'C:\ProgramData\hikidashi'
  Trigger   = New-ScheduledTaskTrigger -AtStartup
  Principal = New-ScheduledTaskPrincipal -UserId 'S-1-5-19' -LogonType ServiceAccount
  # By default a task ends after three days, and when the machine runs on its battery.
  Settings  = New-ScheduledTaskSettingsSet -ExecutionTimeLimit ([TimeSpan]::Zero) -RestartCount 99 -RestartInterval (New-TimeSpan -Minutes 1) -AllowStartIfOnBatteries -DontStopIfGoingOnBatteries
}
Register-ScheduledTask @task
Start-ScheduledTask -TaskName 'hikidashi'
