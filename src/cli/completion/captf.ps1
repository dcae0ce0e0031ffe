# Completion of kubectl-captf for PowerShell: kubectl-captf completion powershell | Out-String | Invoke-Expression
Register-ArgumentCompleter -Native -CommandName kubectl-captf -ScriptBlock {
    param($wordToComplete, $commandAst, $cursorPosition)
    $words = @($commandAst.CommandElements | Where-Object { $_.Extent.StartOffset -lt $cursorPosition } |
        Select-Object -Skip 1 | ForEach-Object { $_.Extent.Text })
    # PowerShell drops a bare empty argument, so it is passed as one that is quoted.
    if (-not $wordToComplete) { $words += '""' }
    & kubectl-captf __complete @words 2>$null | Where-Object { $_ -notmatch '^:[0-9]+$' } | ForEach-Object {
        $value, $about = $_ -split "`t", 2
        if (-not $about) { $about = $value }
        [System.Management.Automation.CompletionResult]::new($value, $value, 'ParameterValue', $about)
    }
}
