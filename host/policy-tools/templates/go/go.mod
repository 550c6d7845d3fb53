module policy

go 1.25
