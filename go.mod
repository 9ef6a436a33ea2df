module github.com/nixiemq/nixie

go 1.26
